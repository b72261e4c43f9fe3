// What the welcome shows.

import type { TranslationBundle } from '@jupyterlab/translation';
import { closeIcon, folderIcon } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import { type Message, MessageLoop } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';

import { element } from '../common/elements';
import { WELCOME_STYLE } from './welcome_style';
import { folderNote, greeting, openFolderLabel, stepLabels, welcomeLabels } from './words';

/** A folder of the home that the portal put there: portal/dsportal/session/page/look.py. */
export interface IHomeFolder {
  name: string;
  target: string;
  note: string;
  has_templates: boolean;
}

interface IOptions {
  title: string;
  folders: IHomeFolder[];
  commands: CommandRegistry;
  texts: TranslationBundle;
  dismiss: () => void;
}

/** Folders and three steps, with the buttons that do them. */
export class Welcome extends Widget {
  constructor(private _given: IOptions) {
    super({ node: document.createElement('section') });
    this.addClass('portal-welcome');
    this.node.setAttribute('aria-label', welcomeLabels(_given.texts).title);
    const style = document.createElement('style');
    style.textContent = WELCOME_STYLE;
    this._inner.className = 'portal-welcome-inner';
    this._inner.append(this._head(), this._folders(), this._steps());
    this.node.append(style, this._inner);
    this._sizes = new ResizeObserver(() => this._fit());
  }

  protected override onAfterAttach(_: Message): void {
    this._sizes.observe(this._inner);
  }

  protected override onBeforeDetach(_: Message): void {
    this._sizes.disconnect();
  }

  protected override onResize(_: Widget.ResizeMessage): void {
    this._fit();
  }

  /** A panel of Lumino's gives a widget the least height that it asks for; the rest is scrolled. */
  private _fit(): void {
    const most = MOST_OF_THE_TAB * (this.parent?.parent?.node.clientHeight ?? Infinity);
    const height = `${Math.ceil(Math.min(this._inner.offsetHeight, most))}px`;
    if (this.node.style.minHeight !== height && this.parent) {
      this.node.style.minHeight = height;
      MessageLoop.postMessage(this.parent, Widget.Msg.FitRequest);
    }
  }

  private _head(): HTMLElement {
    const { texts, title, dismiss } = this._given;
    const head = element('header');
    const labels = welcomeLabels(texts);
    const close = element('button', 'portal-welcome-close');
    close.type = 'button';
    close.title = labels.dismissCaption;
    close.setAttribute('aria-label', labels.dismiss);
    closeIcon.element({ container: close, elementSize: 'normal' });
    close.addEventListener('click', dismiss);
    head.append(element('h2', '', greeting(title, texts)), close);
    return head;
  }

  private _folders(): HTMLElement {
    const { texts, folders } = this._given;
    const list = element('ul', 'portal-welcome-folders');
    for (const folder of folders) {
      const name = folder.name;
      const item = element('li');
      const open = this._button(name, 'filebrowser:open-path', { path: name });
      open.setAttribute('aria-label', openFolderLabel(name, texts));
      open.prepend(folderIcon.element({ tag: 'span', elementSize: 'normal' }));
      item.append(open, element('p', '', folder.note || folderNote(folder, texts)));
      list.append(item);
    }
    return list;
  }

  private _steps(): HTMLElement {
    const labels = stepLabels(this._given.texts);
    const list = element('ol', 'portal-welcome-steps');
    list.append(
      this._step(
        labels.begin,
        labels.howToBegin,
        this._button(labels.newFromTemplate, 'data-scientist-portal:new-from-template')
      ),
      this._step(labels.run, labels.howToRun),
      this._step(
        labels.end,
        labels.howToEnd,
        this._button(labels.extend, 'data-scientist-portal:extend-session'),
        this._button(labels.stop, 'data-scientist-portal:stop-session')
      )
    );
    return list;
  }

  private _step(title: string, words: string, ...buttons: HTMLElement[]): HTMLElement {
    const step = element('li');
    const row = element('div', 'portal-welcome-buttons');
    row.append(...buttons);
    step.append(
      element('h3', '', title),
      element('p', '', words),
      ...(buttons.length ? [row] : [])
    );
    return step;
  }

  private _button(label: string, command: string, args = {}): HTMLButtonElement {
    const button = element('button', 'portal-welcome-button', label);
    button.type = 'button';
    button.addEventListener('click', () => void this._given.commands.execute(command, args));
    return button;
  }

  private _inner = element('div');
  private _sizes: ResizeObserver;
}

/** The launcher's cards must be in sight below it. */
const MOST_OF_THE_TAB = 0.6;
