// How full the storage is, below the file browser.

import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { IDefaultFileBrowser } from '@jupyterlab/filebrowser';
import { ITranslator, type TranslationBundle } from '@jupyterlab/translation';
import { Poll } from '@lumino/polling';
import type { Message } from '@lumino/messaging';
import { Widget, type PanelLayout } from '@lumino/widgets';

import { fullness, NEARLY_FULL, type IStorage } from '../common/bytes';
import { addStyle, element } from '../common/elements';
import { bar, JOB_STYLE } from '../jobs/style';
import { readStorage } from '../jobs/server';
import { lineLabel, lineText, source } from './words';

const READ_MILLISECONDS = 60_000;

/** The storage's fullness, in JupyterLab. */
export const quota: JupyterFrontEndPlugin<void> = {
  id: 'data-scientist-portal:quota',
  description: 'Shows how full the storage in the file browser is.',
  autoStart: true,
  requires: [IDefaultFileBrowser, ITranslator],
  activate: (app: JupyterFrontEnd, browser: IDefaultFileBrowser, translator: ITranslator): void => {
    const texts = translator.load('data_scientist_portal');
    const settings = app.serviceManager.serverSettings;
    addStyle(JOB_STYLE);
    const line = new StorageLine(texts);
    const here = (): string => app.serviceManager.contents.localPath(browser.model.path);
    (browser.layout as PanelLayout).addWidget(line);
    const poll = new Poll({
      name: 'data-scientist-portal:quota',
      frequency: { interval: READ_MILLISECONDS, backoff: true, max: 10 * READ_MILLISECONDS },
      standby: () => (browser.isVisible ? 'when-hidden' : true),
      factory: async () => {
        const path = here();
        let storage: IStorage | null = null;
        try {
          storage = await readStorage(settings, path);
        } finally {
          // Where nothing is known, nothing is shown.
          if (path === here()) {
            line.present(storage);
          }
        }
      }
    });
    // Also while an answer about another folder is awaited, for which `refresh` would do nothing.
    browser.model.pathChanged.connect(
      () => void poll.schedule({ interval: Poll.IMMEDIATE, phase: 'refreshed' })
    );
    line.onShown = () => void poll.refresh();
    void app.restored.then(() => poll.refresh());
  }
};

/** One line and a bar. */
class StorageLine extends Widget {
  constructor(private _texts: TranslationBundle) {
    super();
    this.addClass('portal-Storage');
    this.node.setAttribute('role', 'note');
    this.node.setAttribute('aria-label', lineLabel(_texts));
  }

  /** Called when the file browser comes into sight. */
  onShown: () => void = () => undefined;

  present(storage: IStorage | null): void {
    if (storage === null) {
      this.node.replaceChildren();
      return;
    }
    const texts = this._texts;
    const part = fullness(storage);
    const isFull = part >= NEARLY_FULL;
    this.node.toggleAttribute('data-full', isFull);
    this.node.title = source(storage, texts);
    const text = lineText(storage, isFull, texts);
    this.node.replaceChildren(element('div', '', text), bar(part, isFull));
  }

  protected override onAfterShow(msg: Message): void {
    super.onAfterShow(msg);
    this.onShown();
  }
}
