// A notification of the browser when work that took long ends, and nobody looks at JupyterLab.

import { Notification as Toast } from '@jupyterlab/apputils';
import type { ISettingRegistry } from '@jupyterlab/settingregistry';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Token } from '@lumino/coreutils';

import { notAllowed, permissionPrompt, permissionPromptLabels, ranFor } from './words';

const ENABLED = 'enabled';
const SECONDS = 'seconds';

/** Tells the user of work that ended. */
export interface INotifier {
  /** Take note that something ended; `title` says what, `tag` which: a later one takes its place. */
  ended(title: string, ranSeconds: number, tag: string): void;
}

/** Whoever watches work. */
export const INotifier = new Token<INotifier>(
  'data-scientist-portal:INotifier',
  'Tells the user of work that ended, by a notification of the browser.'
);

/** Notifies, or offers to. */
export class Notifier implements INotifier {
  constructor(
    private _settings: ISettingRegistry.ISettings,
    private _texts: TranslationBundle
  ) {}

  /** Whether the browser can notify, if it may. */
  get isPossible(): boolean {
    return window.isSecureContext && 'Notification' in window;
  }

  /** Whether the user is notified. */
  get isOn(): boolean {
    return this._isWanted && this.isPossible && Notification.permission === 'granted';
  }

  ended(title: string, ranSeconds: number, tag: string): void {
    if (!this._isWanted || !this.isPossible || ranSeconds < this._longSeconds) {
      return;
    }
    if (Notification.permission === 'default') {
      this._offer();
    } else if (this.isOn && (document.hidden || !document.hasFocus())) {
      this._show(title, ranFor(ranSeconds, this._texts), tag);
    }
  }

  /** Turn it on, by the user's click: a browser asks for its permission at nothing else. */
  async turnOn(): Promise<void> {
    await this._settings.set(ENABLED, true);
    if ((await Notification.requestPermission()) !== 'granted') {
      Toast.warning(notAllowed(this._texts), {
        autoClose: 10_000
      });
    }
  }

  /** Turn it off. */
  async turnOff(): Promise<void> {
    await this._settings.set(ENABLED, false);
  }

  private _show(title: string, body: string, tag: string): void {
    try {
      const shown = new Notification(title, { body, tag });
      shown.onclick = () => {
        window.focus();
        shown.close();
      };
    } catch {
      // Chrome on Android asks for the permission, and refuses the notification.
    }
  }

  private _offer(): void {
    if (this._isOffered) {
      return;
    }
    this._isOffered = true;
    const labels = permissionPromptLabels(this._texts);
    Toast.info(permissionPrompt(this._texts), {
      autoClose: false,
      actions: [
        {
          label: labels.accept,
          displayType: 'accent',
          callback: () => void this.turnOn()
        },
        { label: labels.decline, callback: () => void this.turnOff() }
      ]
    });
  }

  private get _isWanted(): boolean {
    return this._settings.get(ENABLED).composite === true;
  }

  private get _longSeconds(): number {
    return this._settings.get(SECONDS).composite as number;
  }

  private _isOffered = false;
}
