// Whether the session is there: what is said when it is not, and that all else falls silent then.

import {
  IConnectionLost,
  JupyterFrontEnd,
  JupyterLab,
  type JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { Dialog } from '@jupyterlab/apputils';
import { PageConfig } from '@jupyterlab/coreutils';
import { IDocumentManager } from '@jupyterlab/docmanager';
import type { ServerConnection } from '@jupyterlab/services';
import { ITranslator, type TranslationBundle } from '@jupyterlab/translation';
import { Token } from '@lumino/coreutils';
import { Signal, type ISignal } from '@lumino/signaling';
import { Widget } from '@lumino/widgets';

import { changedPaths, currentPath, savedAt } from '../common/documents';
import { addStyle, element } from '../common/elements';
import { fallSilent, read } from '../common/server';
import { againUrl, askHub, type IFate, type IHub } from './fate';
import { endDialogLabels, notReached, saved, sessionEnded, startingAgain } from './words';

const AGAIN_MILLISECONDS = 2_000;
/** Until somebody has logged in in another tab, which may be tomorrow. */
const STRANGER_MILLISECONDS = 15_000;
/** The session itself may ask the hub for the time, for ten seconds. */
const ANSWER_MILLISECONDS = 15_000;
const NOTICE = `.portal-Notice {
  position: fixed; right: 16px; bottom: 40px; z-index: 9999; max-width: calc(100vw - 64px);
  padding: 12px 16px; border-left: 4px solid var(--jp-warn-color1);
  background: var(--jp-layout-color1); color: var(--jp-ui-font-color1);
  box-shadow: var(--jp-elevation-z6); font-size: var(--jp-ui-font-size1);
}`;

/** What others ask of it. */
export interface ISessionLife {
  /** Whether the session has ended: nothing is to be counted, asked or warned of any more. */
  readonly isOver: boolean;
  /** Emitted once, when it has. */
  readonly over: ISignal<ISessionLife, void>;
  /** Find out; `endsUntil`: until when (milliseconds since 1970) an end is awaited. */
  check(endsUntil?: number): Promise<void>;
  /** Say again how it ended. */
  tell(): void;
}

export const ISessionLife = new Token<ISessionLife>(
  'data-scientist-portal:ISessionLife',
  'Whether the session still runs'
);

/** Finds out what became of a session that does not answer. */
export const life: JupyterFrontEndPlugin<ISessionLife> = {
  id: 'data-scientist-portal:life',
  description: 'Says how a session ended, and waits while the connection is lost.',
  autoStart: true,
  provides: ISessionLife,
  requires: [JupyterFrontEnd.IPaths, IDocumentManager, ITranslator],
  optional: [JupyterLab.IInfo],
  activate: (
    app: JupyterFrontEnd,
    paths: JupyterFrontEnd.IPaths,
    documents: IDocumentManager,
    translator: ITranslator,
    info: JupyterLab.IInfo | null
  ): ISessionLife => {
    const { hubHost, hubPrefix, hubUser, hubServerName } = paths.urls;
    const hub = {
      host: hubHost ?? '',
      prefix: hubPrefix ?? '',
      user: hubUser ?? '',
      server: hubServerName ?? ''
    };
    const found = new SessionLife(
      app.serviceManager.serverSettings,
      hub,
      translator.load('data_scientist_portal'),
      {
        changed: () => changedPaths(app.shell, documents),
        savedAt: () => savedAt(app.shell, documents),
        current: () => currentPath(app.shell, documents)
      }
    );
    found.over.connect(() => {
      if (info) {
        info.isConnected = false;
      }
    });
    for (const change of ['offline', 'online']) {
      window.addEventListener(change, () => void found.check());
    }
    return found;
  }
};

/** In the place of JupyterLab's own, which takes everything for a server that is to be restarted. */
export const connectionLost: JupyterFrontEndPlugin<IConnectionLost> = {
  id: 'data-scientist-portal:connection-lost',
  description: 'Asks the hub what became of a session that does not answer.',
  autoStart: true,
  provides: IConnectionLost,
  requires: [ISessionLife],
  activate:
    (_: JupyterFrontEnd, session: ISessionLife): IConnectionLost =>
    () =>
      session.check()
};

/** The open documents, as far as it matters here. */
interface IOpen {
  changed(): string[];
  savedAt(): number | null;
  current(): string;
}

class SessionLife implements ISessionLife {
  constructor(
    private _settings: ServerConnection.ISettings,
    private _hub: IHub,
    private _texts: TranslationBundle,
    private _open: IOpen
  ) {}

  readonly over: Signal<ISessionLife, void> = new Signal(this);

  get isOver(): boolean {
    return this._end !== null;
  }

  async check(endsUntil = 0): Promise<void> {
    this._endsUntil = Math.max(this._endsUntil, endsUntil);
    if (this._isChecking || this.isOver) {
      return;
    }
    this._isChecking = true;
    try {
      let pause = await this._look();
      while (pause > 0) {
        await new Promise(resolve => setTimeout(resolve, pause));
        pause = await this._look();
      }
    } finally {
      this._isChecking = false;
      this._say('');
    }
  }

  tell(): void {
    if (!this._end || this._isTelling) {
      return;
    }
    this._isTelling = true;
    void this._tell(this._end).finally(() => {
      this._isTelling = false;
    });
  }

  /** Find out once; return after how many milliseconds to ask again, 0 where all is known. */
  private async _look(): Promise<number> {
    const fate = await askHub(this._hub, PageConfig.getOption('portalJob'));
    if (fate.state === 'ended') {
      this._finish(fate);
      return 0;
    }
    if (await this._answers()) {
      return Date.now() > this._endsUntil ? 0 : AGAIN_MILLISECONDS;
    }
    if (fate.state === 'unknown') {
      this._finish(fate);
      return 0;
    }
    // Whoever may not ask is told nothing: the session may well run.
    this._say(notReached(fate.state, this._texts));
    return fate.state === 'stranger' ? STRANGER_MILLISECONDS : AGAIN_MILLISECONDS;
  }

  private async _answers(): Promise<boolean> {
    try {
      await read(this._settings, ANSWER_MILLISECONDS);
      return true;
    } catch {
      return false;
    }
  }

  private _finish(fate: IFate): void {
    this._end = fate;
    fallSilent();
    this.over.emit();
    // Dialogs stand in line; what they ask, or complain of, is of a session that is gone.
    Dialog.flush();
    this.tell();
  }

  /** Show one notice, for as long as it is so. */
  private _say(words: string): void {
    if (words === this._said) {
      return;
    }
    this._said = words;
    this._notice?.remove();
    this._notice = null;
    if (words) {
      // JupyterLab loads what draws its own notices when the first one comes, which may be now.
      addStyle(NOTICE);
      this._notice = element('div', 'portal-Notice');
      this._notice.setAttribute('role', 'status');
      document.body.append(this._notice);
      this._notice.textContent = words;
    }
  }

  private async _tell(fate: IFate): Promise<void> {
    const texts = this._texts;
    const labels = endDialogLabels(texts);
    const body = new Widget();
    const lines = [
      sessionEnded(fate.ended, fate.why, texts),
      saved(this._open.changed(), this._open.savedAt(), texts)
    ];
    body.node.append(...lines.filter(Boolean).map(line => element('p', '', line)));
    const answer = await new Dialog({
      title: labels.title,
      body,
      buttons: [
        Dialog.cancelButton({ label: labels.close }),
        Dialog.okButton({ label: labels.again, caption: labels.againCaption })
      ]
    }).launch();
    if (answer.button.accept) {
      window.location.href = await this._again();
    }
  }

  /** Ask the hub for what starts the session without the form; return where to go. */
  private async _again(): Promise<string> {
    const jobId = PageConfig.getOption('portalJob');
    this._say(startingAgain(this._texts));
    const { token } = await askHub(this._hub, jobId);
    // Who has not saved may stay on this page.
    this._say('');
    return againUrl(this._hub, { jobId, token }, this._settings.baseUrl, this._open.current());
  }

  private _end: IFate | null = null;
  private _endsUntil = 0;
  private _isChecking = false;
  private _isTelling = false;
  private _said = '';
  private _notice: HTMLElement | null = null;
}
