// A session that nobody uses: the warning before it ends, and the signs of the user's hand.

import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import type { ServerConnection } from '@jupyterlab/services';
import { ITranslator, type TranslationBundle } from '@jupyterlab/translation';
import { Poll } from '@lumino/polling';

import { Rereading } from '../common/rereading';
import { readIdle, sayThere, type IIdle } from '../common/server';
import { idlePause, isWarned, LONGEST_IDLE_PAUSE, span, Throttle } from '../common/time';
import { ISessionLife } from './life';
import { keepLabel, unusedWarning } from './words';

/** What is older is read again before it is warned of: somebody may have used the session since. */
const OLD_MILLISECONDS = 5_000;
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
    void app.restored.then(() => use.start());
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
      frequency: this._frequency(),
      standby: 'when-hidden',
      factory: async () => {
        await this._reading.read(Date.now());
        poll.frequency = this._frequency();
      }
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

  private _frequency(): { interval: number; backoff: boolean; max: number } {
    const seconds = idlePause(this._use, this._now(), (Date.now() - this._begun) / 1000);
    return { interval: 1000 * seconds, backoff: true, max: 1000 * LONGEST_IDLE_PAUSE };
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
    if (!this._use || !isWarned(this._use, this._now())) {
      this._dismiss();
    } else if (!this._warning && !this._isTelling && !this._reading.isAwaited(Date.now())) {
      this._warn(this._use);
    }
  }

  /** The server's time: the browser's may be off. */
  private _now(): number {
    return Date.now() / 1000 + this._offset;
  }

  private _warn(use: IIdle): void {
    const texts = this._texts;
    const unused = span((use.ends_at ?? 0) - use.used_at - use.warning_seconds, texts);
    this._warning = Notification.warning(unusedWarning(unused, use.ends_at ?? 0, texts), {
      autoClose: false,
      // Any click keeps the session; this one says so.
      actions: [{ label: keepLabel(texts), displayType: 'accent', callback: () => undefined }]
    });
  }

  private _dismiss(): void {
    if (this._warning !== null) {
      Notification.dismiss(this._warning);
      this._warning = null;
    }
  }

  private _reading = new Rereading(
    async () => this._take(await readIdle(this._settings)),
    OLD_MILLISECONDS
  );
  private _begun = Date.now();
  private _use: IIdle | null = null;
  private _offset = 0;
  private _hand = new Throttle(HAND_SECONDS);
  private _isTelling = false;
  private _warning: string | null = null;
}
