// The session's end: time left in the status bar, warnings, more time, changed documents saved.

import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { Dialog, ICommandPalette, Notification, showDialog } from '@jupyterlab/apputils';
import { IDocumentManager } from '@jupyterlab/docmanager';
import type { ServerConnection } from '@jupyterlab/services';
import { IStatusBar } from '@jupyterlab/statusbar';
import { ITranslator, type TranslationBundle } from '@jupyterlab/translation';
import { Poll } from '@lumino/polling';

import { hasChanged, saveChanged } from '../common/documents';
import { Rereading } from '../common/rereading';
import { extend, read, tell, wordsOf, type IReading } from '../common/server';
import { amount, extensionChoices, Marks, span, Throttle } from '../common/time';
import { ExtensionChoice } from './extension_choice';
import { ISessionLife } from './life';
import { TimeLeft } from './time_left';
import {
  endsAt,
  endWarning,
  extendableUntil,
  extendCommandLabels,
  extended,
  extendLabel,
  extensionDialogLabels,
  extensionQuestion,
  facts,
  isOver,
  jobFacts,
  notExtendable,
  notExtended,
  timeLeft
} from './words';

const EXTEND = 'data-scientist-portal:extend-session';
const STOPPING = 'https://events.data-scientist-portal.org/session-stopping/v1';

const READ_MILLISECONDS = 60_000;
const TICK_MILLISECONDS = 1_000;
/** How long a session that was told to stop may take. */
const STOPPING_MILLISECONDS = 60_000;
/** How long after its deadline, and how often, a session that still answers is asked for. */
const OVERDUE_SECONDS = 5;
/** Early enough for slow storage, and once more for what is typed afterwards. */
const SAVE_SECONDS = [120, 20];
/** What a click on a warning adds, where that much can be had. */
const USUAL_EXTENSION_MINUTES = 60;

/** The session's clock in JupyterLab. */
export const clock: JupyterFrontEndPlugin<void> = {
  id: 'data-scientist-portal:clock',
  description:
    'Shows when the session ends, warns before it does, extends it, and saves documents first.',
  autoStart: true,
  requires: [IDocumentManager, ISessionLife, ITranslator],
  optional: [IStatusBar, ICommandPalette],
  activate: (
    app: JupyterFrontEnd,
    documents: IDocumentManager,
    life: ISessionLife,
    translator: ITranslator,
    statusBar: IStatusBar | null,
    palette: ICommandPalette | null
  ): void => {
    const texts = translator.load('data_scientist_portal');
    const end = new SessionEnd(
      app.serviceManager.serverSettings,
      life,
      texts,
      () => hasChanged(app.shell, documents),
      () => saveChanged(app.shell, documents)
    );
    const labels = extendCommandLabels(texts);
    app.commands.addCommand(EXTEND, {
      label: labels.label,
      caption: labels.caption,
      isEnabled: () => end.canExtend,
      describedBy: {
        args: {
          type: 'object',
          properties: {
            minutes: { type: 'number', description: labels.minutesArgument }
          }
        }
      },
      execute: args => end.extend(typeof args.minutes === 'number' ? args.minutes : null)
    });
    palette?.addItem({ command: EXTEND, category: labels.category });
    const status = new TimeLeft(() =>
      life.isOver ? life.tell() : void app.commands.execute(EXTEND)
    );
    statusBar?.registerStatusItem('data-scientist-portal:time-left', {
      item: status,
      align: 'right',
      rank: 0,
      priority: 10,
      isActive: () => true
    });
    end.onTick = () => status.present(end.facts, end.summary, end.caption, end.isUrgent);
    app.serviceManager.events.stream.connect((_, event) => {
      if (event.schema_id === STOPPING) {
        void end.stopping().then(() => life.check(Date.now() + STOPPING_MILLISECONDS));
      }
    });
    void app.restored.then(() => end.start());
  }
};

/** What is known of the session's end, and what is done about it. */
class SessionEnd {
  constructor(
    private _settings: ServerConnection.ISettings,
    private _life: ISessionLife,
    private _texts: TranslationBundle,
    private _mustSave: () => boolean,
    private _save: () => Promise<string[]>
  ) {}

  /** Called every second. */
  onTick: () => void = () => undefined;

  /** Begin to read the server's clock and to watch the time. */
  start(): void {
    const poll = new Poll({
      name: 'data-scientist-portal:clock',
      frequency: { interval: READ_MILLISECONDS, backoff: true, max: 5 * READ_MILLISECONDS },
      // A tab that nobody looks at is silent: it is no sign of somebody's work.
      standby: 'when-hidden',
      factory: () => this._clock.read(Date.now())
    });
    const ticks = setInterval(() => this._tick(), TICK_MILLISECONDS);
    this._life.over.connect(() => {
      poll.dispose();
      clearInterval(ticks);
      this._reading = null;
      this._dismissWarning();
      this.onTick();
    });
  }

  /** Whether there is an end that could be moved. */
  get canExtend(): boolean {
    return this._reading?.deadline !== null && this._reading?.deadline !== undefined;
  }

  /** Whether the first warning is due. */
  get isUrgent(): boolean {
    const marks = this._reading?.warning_minutes ?? [];
    const left = this._left();
    return left !== null && left <= 60 * Math.max(0, ...marks);
  }

  /** The time left, in a few words; empty where there is no end. */
  get summary(): string {
    if (this._life.isOver) {
      return isOver(this._texts);
    }
    const left = this._left();
    return left === null ? '' : timeLeft(span(left, this._texts), this._texts);
  }

  /** What the session holds and where, in a few words. */
  get facts(): string {
    return this._reading ? facts(this._reading, this._texts) : '';
  }

  /** Where the session runs and when it ends. */
  get caption(): string {
    const reading = this._reading;
    if (!reading || reading.deadline === null) {
      return '';
    }
    const end = endsAt(reading.deadline, this._texts);
    return `${end}\n${jobFacts(reading, this._texts)}\n${this._possible(reading)}`;
  }

  /** Extend the session; ask for how long where `minutes` is null. */
  async extend(minutes: number | null): Promise<void> {
    const texts = this._texts;
    try {
      // What can be had may have changed in another window, or at the hub.
      await this._clock.read(Date.now());
      const reading = this._reading;
      if (!reading || reading.longest_minutes < 1) {
        Notification.info(notExtendable(reading?.reason, texts), { autoClose: 10_000 });
        return;
      }
      const chosen = minutes ?? (await this._choose(reading));
      if (chosen === null) {
        return;
      }
      this._take(await extend(this._settings, Math.min(chosen, reading.longest_minutes)));
      this._dismissWarning();
      const deadline = this._reading?.deadline;
      if (deadline) {
        Notification.success(extended(deadline, texts), { autoClose: 10_000 });
      }
    } catch (error) {
      // With the session its dialog went, too.
      if (this._life.isOver) {
        return;
      }
      Notification.error(notExtended(wordsOf(error), texts), { autoClose: false });
    }
  }

  /** Save what would be lost: the server has been told to stop, and waits if somebody says so. */
  async stopping(): Promise<void> {
    if (!this._mustSave()) {
      return;
    }
    // After JupyterHub's own Stop there is no way to the server any more, nor for the documents.
    if (await tell(this._settings, 'saving')) {
      await this._save();
      await tell(this._settings, 'saved');
    }
  }

  private _take(reading: IReading): void {
    if (this._life.isOver) {
      return;
    }
    this._offset = reading.now - Date.now() / 1000;
    const minutes = reading.warning_minutes;
    if (String(minutes) !== String(this._reading?.warning_minutes)) {
      this._warnings = new Marks(minutes.map(minute => 60 * minute));
    }
    if (this._reading && reading.deadline !== this._reading.deadline) {
      this._dismissWarning();
    }
    this._reading = reading;
    this._tick();
  }

  private _tick(): void {
    const deadline = this._reading?.deadline;
    const now = this._now();
    if (deadline && now > deadline + OVERDUE_SECONDS && this._overdue.isDue(now)) {
      this._overdue.done(now);
      void this._life.check();
    }
    if (deadline && (this._saves.isDue(deadline, now) || this._warnings.isDue(deadline, now))) {
      // In a tab in the background the deadline may be an old one.
      if (!this._clock.isAwaited(Date.now())) {
        this._act(deadline, now);
      }
    }
    this.onTick();
  }

  private _act(deadline: number, now: number): void {
    if (this._saves.passed(deadline, now) !== null) {
      void this._save();
    }
    if (this._warnings.passed(deadline, now) !== null) {
      this._warn(deadline);
    }
  }

  private _warn(deadline: number): void {
    const texts = this._texts;
    this._dismissWarning();
    const left = span(deadline - this._now() + 30, texts);
    const reading = this._reading as IReading;
    const minutes = Math.min(USUAL_EXTENSION_MINUTES, reading.longest_minutes);
    const reason = minutes < 1 ? reading.reason : '';
    const extension = {
      label: extendLabel(amount(minutes, texts), texts),
      caption: this._possible(reading),
      displayType: 'accent' as const,
      callback: () => void this.extend(minutes)
    };
    this._warning = Notification.warning(endWarning(left, deadline, reason, texts), {
      autoClose: false,
      actions: minutes < 1 ? [] : [extension]
    });
  }

  private _dismissWarning(): void {
    if (this._warning) {
      Notification.dismiss(this._warning);
      this._warning = null;
    }
  }

  private async _choose(reading: IReading): Promise<number | null> {
    const texts = this._texts;
    const choices = extensionChoices(reading.longest_minutes);
    const labels = choices.map(minutes => amount(minutes, texts));
    const usual = choices.indexOf(USUAL_EXTENSION_MINUTES);
    const dialog = extensionDialogLabels(texts);
    const question = extensionQuestion(reading.deadline ?? 0, reading.times_left, texts);
    const answer = await showDialog({
      title: dialog.title,
      body: new ExtensionChoice(question, labels, Math.max(0, usual)),
      buttons: [Dialog.cancelButton(), Dialog.okButton({ label: dialog.extend })],
      focusNodeSelector: 'select'
    });
    return answer.button.accept ? (choices[answer.value ?? -1] ?? null) : null;
  }

  private _possible(reading: IReading): string {
    return reading.until === null ? reading.reason : extendableUntil(reading.until, this._texts);
  }

  private _left(): number | null {
    const deadline = this._reading?.deadline;
    return deadline ? deadline - this._now() : null;
  }

  /** The server's time: the browser's may be off. */
  private _now(): number {
    return Date.now() / 1000 + this._offset;
  }

  private _reading: IReading | null = null;
  private _offset = 0;
  private _clock = new Rereading(
    async () => this._take(await read(this._settings)),
    2 * READ_MILLISECONDS
  );
  private _warnings = new Marks([]);
  private _saves = new Marks(SAVE_SECONDS);
  private _overdue = new Throttle(OVERDUE_SECONDS);
  private _warning: string | null = null;
}
