// A session that nobody uses: the warning before it ends, and the signs of the user's hand.

import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import type { ServerConnection } from '@jupyterlab/services';
import { ITranslator, type TranslationBundle } from '@jupyterlab/translation';
import { Poll } from '@lumino/polling';

import { readIdle, sayThere, type IIdle } from '../common/server';
import { isWarned, span, Throttle } from '../common/time';
import { ISessionLife } from './life';
import { unusedWarning } from './words';

const READ_MILLISECONDS = 30_000;
const TICK_MILLISECONDS = 1_000;
/** How often the server hears of somebody who works in the page. */
const HAND_SECONDS = 60;
/** What only a person does; a page that is left alone sends none of them. */
const HAND = ['keydown', 'pointerdown', 'wheel'] as const;

/** The warning before an unused session ends. */
export const idle: JupyterFrontEndPlugin<void> = {
  id: 'data-scientist-portal:idle',
  description: 'Warns before an unused session ends.',
  autoStart: true,
  requires: [ISessionLife, ITranslator],
  activate: (app: JupyterFrontEnd, life: ISessionLife, translator: ITranslator): void => {
    const texts = translator.load('data_scientist_portal');
    const use = new Use(app.serviceManager.serverSettings, life, texts);
    app.restored.then(
      () => use.start(),
      () => use.start()
    );
  }
};

/** What is known of the session's use. */
class Use {
  constructor(
    private _settings: ServerConnection.ISettings,
    private _life: ISessionLife,
    private _texts: TranslationBundle
  ) {}

  start(): void {
    const poll = new Poll({
      name: 'data-scientist-portal:idle',
      frequency: { interval: READ_MILLISECONDS, backoff: true, max: 5 * READ_MILLISECONDS },
      standby: 'when-hidden',
      factory: async () => this._take(await readIdle(this._settings))
    });
    document.addEventListener('visibilitychange', () => {
      if (document.visibilityState === 'visible') {
        void poll.refresh();
      }
    });
    for (const sign of HAND) {
      document.addEventListener(sign, event => this._seeHand(event), {
        capture: true,
        passive: true
      });
    }
    const ticks = setInterval(() => this._tick(), TICK_MILLISECONDS);
    this._life.over.connect(() => {
      poll.dispose();
      clearInterval(ticks);
      this._dismiss();
    });
  }

  private _seeHand(event: Event): void {
    // Made by a program, as a macro in a notebook's output can.
    if (!event.isTrusted || this._life.isOver) {
      return;
    }
    // While the warning is shown, whoever does something shall see it go.
    if (this._warning !== null || this._hand.isDue(Date.now() / 1000)) {
      this._hand.done(Date.now() / 1000);
      this._dismiss();
      void this._sayThere();
    }
  }

  private async _sayThere(): Promise<void> {
    // What is known until the answer would bring the warning back.
    this._isTelling = true;
    try {
      this._take(await sayThere(this._settings));
    } catch {
      // The server may not have heard; the next sign tells it again.
      this._hand.forget();
    } finally {
      this._isTelling = false;
    }
  }

  private _take(use: IIdle): void {
    if (this._life.isOver) {
      return;
    }
    this._offset = use.now - Date.now() / 1000;
    this._use = use;
    this._tick();
  }

  private _tick(): void {
    const now = Date.now() / 1000 + this._offset;
    if (!this._use || !isWarned(this._use, now)) {
      this._dismiss();
    } else if (this._warning === null && !this._isTelling) {
      this._warn(this._use);
    }
  }

  private _warn(use: IIdle): void {
    const texts = this._texts;
    const unused = span((use.ends_at ?? 0) - use.used_at - use.warning_seconds, texts);
    this._warning = Notification.warning(unusedWarning(unused, use.ends_at ?? 0, texts), {
      autoClose: false,
      // Any click keeps the session; this one says so.
      actions: [
        { label: texts.__('Keep Session'), displayType: 'accent', callback: () => undefined }
      ]
    });
  }

  private _dismiss(): void {
    if (this._warning !== null) {
      Notification.dismiss(this._warning);
      this._warning = null;
    }
  }

  private _use: IIdle | null = null;
  private _offset = 0;
  private _hand = new Throttle(HAND_SECONDS);
  private _isTelling = false;
  private _warning: string | null = null;
}
