// A mount that does not answer, or a storage that is nearly full: said once, and taken back.

import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { IDefaultFileBrowser } from '@jupyterlab/filebrowser';
import { ServerConnection } from '@jupyterlab/services';
import { ITranslator, type TranslationBundle } from '@jupyterlab/translation';
import { Poll } from '@lumino/polling';

import { readNotices } from '../jobs/server';
import { readLook } from '../look/look';
import type { INotices } from './trouble';
import { fullWords, troubleWords } from './words';

const READ_MILLISECONDS = 60_000;
/** The session's first round of questions takes a moment. */
const FIRST_MILLISECONDS = 5_000;
const REFUSED_MILLISECONDS = 8_000;
/** The server's word for files on a mount that does not answer: portal/dsportal/session/files/contents.py. */
const NO_ANSWER = 504;

/** Notices of the storage. */
export const notices: JupyterFrontEndPlugin<void> = {
  id: 'data-scientist-portal:notices',
  description: 'Says which storage is not responding or nearly full.',
  autoStart: true,
  requires: [IDefaultFileBrowser, ITranslator],
  activate: (app: JupyterFrontEnd, browser: IDefaultFileBrowser, translator: ITranslator): void => {
    const board = new Board(readLook().support ?? '', translator.load('data_scientist_portal'));
    const poll = new Poll({
      name: 'data-scientist-portal:notices',
      auto: false,
      frequency: { interval: READ_MILLISECONDS, backoff: true, max: 5 * READ_MILLISECONDS },
      standby: 'when-hidden',
      factory: async () => board.show(await readNotices(app.serviceManager.serverSettings))
    });
    browser.model.connectionFailure.connect((_, error) => board.refuse(error));
    void app.restored.then(async () => {
      await poll.start();
      setTimeout(() => void poll.refresh(), FIRST_MILLISECONDS);
    });
  }
};

/** What is shown, each notice once: who dismisses it is not told again. */
class Board {
  constructor(
    private _support: string,
    private _texts: TranslationBundle
  ) {}

  show(told: INotices): void {
    const words = new Map<string, string>();
    for (const trouble of told.mounts) {
      const key = `${trouble.point} ${trouble.state}`;
      words.set(key, troubleWords(trouble, this._support, this._texts));
    }
    for (const storage of told.storages) {
      words.set(`${storage.mount} full`, fullWords(storage, this._texts));
    }
    for (const [key, notice] of this._shown) {
      if (!words.has(key)) {
        Notification.dismiss(notice);
        this._shown.delete(key);
      }
    }
    for (const [key, text] of words) {
      if (!this._shown.has(key)) {
        this._shown.set(key, Notification.warning(text, { autoClose: false }));
      }
    }
  }

  /** The file browser itself says nothing when a folder cannot be opened for this reason. */
  refuse(error: Error): void {
    if (error instanceof ServerConnection.ResponseError && error.response.status === NO_ANSWER) {
      const message = error.message;
      if (!Notification.update({ id: this._refused, message })) {
        this._refused = Notification.error(message, { autoClose: REFUSED_MILLISECONDS });
      }
    }
  }

  private _refused = '';
  private _shown = new Map<string, string>();
}
