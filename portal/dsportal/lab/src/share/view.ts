// The dialog of sharing: with whom, and what is shared so far, of this notebook and of others.

import { Dialog } from '@jupyterlab/apputils';
import type { ServerConnection } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';

import { namesIn, namesOf, ownFirst } from './audience';
import { readShares, shareNotebook, stopSharing, type IAudience, type IShare } from './server';
import {
  anyone,
  asOf,
  copyLabel,
  dialogLabels,
  groupLabel,
  linkCopied,
  ofOther,
  shareLabels,
  stopLabel,
  stopped
} from './words';
import { element } from '../common/elements';
import { wordsOf } from '../common/server';

const PEOPLE = 'people:';
const LINK = 'link:';

export const SHARE_STYLE = `
.portal-Share { width: min(34rem, 80vw); }
.portal-Share p { margin: 0 0 8px; }
.portal-Share label { display: block; margin: 8px 0 2px; font-weight: 600; }
.portal-Share select, .portal-Share input { box-sizing: border-box; width: 100%; }
.portal-Share [role='alert'] { color: var(--jp-error-color1); overflow-wrap: anywhere; }
.portal-Share ul { margin: 8px 0 0; padding: 0; list-style: none; max-height: 30vh; overflow-y: auto; }
.portal-Share li { display: flex; flex-wrap: wrap; align-items: center; gap: 4px 8px;
  padding: 8px 0; border-top: 1px solid var(--jp-border-color2); }
.portal-Share li > div { flex: 1 1 12rem; min-width: 0; overflow-wrap: anywhere; }
.portal-Share h3 { margin: 20px 0 0; font-size: var(--jp-ui-font-size1); }
.portal-Share [hidden] { display: none; }
.portal-Share [aria-disabled='true'] { opacity: 0.6; }
`;

/** Enter shares with those who were typed, and does not close the dialog. */
export class ShareDialog extends Dialog<void> {
  constructor(
    private _view: ShareView,
    options: Partial<Dialog.IOptions<void>>
  ) {
    super({ ...options, body: _view });
  }

  override handleEvent(event: Event): void {
    const isEnter = event.type === 'keydown' && (event as KeyboardEvent).key === 'Enter';
    if (isEnter && this._view.isTyping(event.target)) {
      event.preventDefault();
      event.stopPropagation();
      this._view.share();
    } else {
      super.handleEvent(event);
    }
  }
}

/** Shares one notebook, and lists all shares. */
export class ShareView extends Widget {
  constructor(
    private _settings: ServerConnection.ISettings,
    private _texts: TranslationBundle,
    private _path: string,
    private _hub: string
  ) {
    super();
    const labels = dialogLabels(_texts);
    this.addClass('portal-Share');
    this._with.id = 'portal-share-with';
    this._with.className = 'jp-mod-styled';
    this._names.id = 'portal-share-names';
    this._names.className = 'jp-mod-styled';
    this._names.autocomplete = 'off';
    this._names.spellcheck = false;
    this._error.setAttribute('role', 'alert');
    this._status.setAttribute('role', 'status');
    const withLabel = element('label', '', labels.audience);
    withLabel.htmlFor = this._with.id;
    this._namesLabel.textContent = labels.names;
    this._namesLabel.htmlFor = this._names.id;
    const button = this._button(labels.share, () => this._share());
    button.classList.add('jp-mod-accept');
    this._with.addEventListener('change', () => this._update());
    this.share = () => button.click();
    const buttons = element('p');
    buttons.style.marginTop = '12px';
    buttons.append(button);
    this.node.append(
      element('p', '', labels.introduction),
      withLabel,
      this._with,
      this._namesLabel,
      this._names,
      buttons,
      this._error,
      this._status,
      this._heading,
      this._list
    );
    this._heading.textContent = labels.shares;
    this._offer([]);
    this._refresh().catch(error => void (this._error.textContent = wordsOf(error)));
  }

  /** Share with whoever is chosen. */
  readonly share: () => void;

  /** Whether somebody is typing names. */
  isTyping(target: EventTarget | null): boolean {
    return target === this._names;
  }

  private _offer(groups: string[]): void {
    const labels = dialogLabels(this._texts);
    const chosen = this._with.value || PEOPLE;
    this._with.replaceChildren(
      new Option(labels.people, PEOPLE),
      ...groups.map(name => new Option(groupLabel(name, this._texts), `group:${name}`)),
      new Option(labels.link, LINK)
    );
    this._with.value = chosen;
    this._update();
  }

  private _update(): void {
    const isPeople = this._with.value === PEOPLE;
    this._names.hidden = this._namesLabel.hidden = !isPeople;
  }

  private _chosen(): IAudience {
    const value = this._with.value;
    if (value === PEOPLE) {
      return { kind: 'people', names: namesIn(this._names.value) };
    }
    return value === LINK
      ? { kind: 'link', names: [] }
      : { kind: 'group', names: [value.slice('group:'.length)] };
  }

  private async _share(): Promise<void> {
    const made = await shareNotebook(this._settings, this._path, this._chosen());
    this._names.value = '';
    await this._refresh();
    await this._copy(made);
  }

  private async _refresh(): Promise<void> {
    const told = await readShares(this._settings);
    this._offer(told.groups);
    const shares = ownFirst(told.shares, this._path);
    this._heading.hidden = shares.length === 0;
    this._list.replaceChildren(...shares.map(one => this._row(one)));
  }

  private _row(one: IShare): HTMLElement {
    const texts = this._texts;
    const row = element('li');
    const labels = shareLabels(texts);
    const names = namesOf(one.audience, anyone(texts));
    const who = one.path === this._path ? names : ofOther(one.path, names, texts);
    const words = element('div', '', who);
    words.append(element('div', '', asOf(one.at, texts)));
    const copy = this._button(labels.copy, () => this._copy(one));
    copy.setAttribute('aria-label', copyLabel(who, texts));
    const stop = this._button(labels.stop, async () => {
      await stopSharing(this._settings, one.id);
      this._status.textContent = stopped(who, texts);
      await this._refresh();
      // With the button its focus has gone: no key would reach the dialog any more.
      this._with.focus();
    });
    stop.setAttribute('aria-label', stopLabel(who, texts));
    row.append(words, copy, stop);
    return row;
  }

  private async _copy(one: IShare): Promise<void> {
    const link = this._hub + one.link;
    try {
      await navigator.clipboard.writeText(link);
    } catch {
      if (!copied(link)) {
        // Too long after the click: it can be selected and copied.
        this._status.textContent = link;
        return;
      }
    }
    this._status.textContent = linkCopied(this._texts);
  }

  private _button(label: string, act: () => void | Promise<void>): HTMLButtonElement {
    const button = element('button', 'jp-mod-styled', label);
    button.type = 'button';
    button.addEventListener('click', async () => {
      if (button.ariaDisabled === 'true') {
        return;
      }
      this._error.textContent = this._status.textContent = '';
      // Not `disabled`, with which it would lose the focus, and the dialog its keys.
      button.ariaDisabled = 'true';
      try {
        await act();
      } catch (error) {
        this._error.textContent = wordsOf(error);
      } finally {
        button.ariaDisabled = null;
      }
    });
    return button;
  }

  private _with = document.createElement('select');
  private _names = document.createElement('input');
  private _namesLabel = document.createElement('label');
  private _error = element('p');
  private _status = element('p');
  private _heading = element('h3');
  private _list = element('ul');
}

/** Copy where there is no HTTPS, by the old way; return whether that was allowed. */
function copied(text: string): boolean {
  const give = (event: ClipboardEvent): void => {
    event.clipboardData?.setData('text/plain', text);
    event.preventDefault();
    event.stopImmediatePropagation();
  };
  document.addEventListener('copy', give, true);
  try {
    return document.execCommand('copy');
  } finally {
    document.removeEventListener('copy', give, true);
  }
}
