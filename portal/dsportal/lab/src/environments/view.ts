// The user's environments in a tab: a list, a form for a new one, and what pip says meanwhile.

import { Dialog, showDialog } from '@jupyterlab/apputils';
import type { ServerConnection } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { Message } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';

import { isName, packagesIn } from './packages';
import {
  createEnvironment,
  readEnvironments,
  removeEnvironment,
  stopTask,
  type IEnvironmentFolder,
  type IEnvironments,
  type IOwnEnvironment,
  type ITask
} from './server';
import {
  descriptionOf,
  folderLabel,
  folderText,
  formLabels,
  nameRule,
  PACKAGES_EXAMPLE,
  progress,
  removeLabel,
  removeLoss,
  removeQuestion,
  viewLabels
} from './words';
import { element, keepFocus } from '../common/elements';
import { isAway, wordsOf } from '../common/server';

/** How often is looked at what is being done: in sight, and for the kernel that it gives. */
const LOOK_MILLISECONDS = 1_000;
const UNSEEN_MILLISECONDS = 10_000;
/** At most, while nobody answers. */
const AWAY_MILLISECONDS = 15_000;
/** In about ten minutes; after that the session has ended. */
const MOST_FAILURES = 40;
// Among modules, which are lists.
const CONDA = 'conda';

/** Shows, makes and removes environments. */
export class EnvironmentsView extends Widget {
  constructor(
    private _settings: ServerConnection.ISettings,
    private _texts: TranslationBundle,
    private _changed: () => void
  ) {
    super();
    const labels = viewLabels(_texts);
    this.addClass('portal-Environments');
    this._name = field('portal-environment-name');
    this._name.required = true;
    this._on = document.createElement('select');
    this._on.id = 'portal-environment-on';
    this._in = document.createElement('select');
    this._in.id = 'portal-environment-in';
    this._packages = field('portal-environment-packages');
    this._error.setAttribute('role', 'alert');
    this._status.setAttribute('role', 'status');
    this._status.tabIndex = -1;
    this._said.tabIndex = 0;
    this._said.setAttribute('aria-label', labels.output);
    this._stop.textContent = labels.stop;
    this._stop.type = 'button';
    this._stop.addEventListener('click', () => void this._do(() => stopTask(_settings)));
    this.node.append(
      element('h2', '', labels.title),
      element('p', '', labels.introduction),
      this._about,
      this._list,
      this._form(),
      this._error,
      this._status,
      this._stop,
      this._said
    );
    this._show(null);
  }

  protected override onAfterShow(message: Message): void {
    super.onAfterShow(message);
    void this.refresh();
  }

  protected override onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    void this.refresh();
  }

  /** Ask the session, and again while something is being done. */
  async refresh(): Promise<void> {
    this._isWanted = true;
    if (this._isAsking) {
      this._wake();
      return;
    }
    this._isAsking = true;
    try {
      // An answer that is under way may not know yet of what has been begun.
      while (this._isWanted && !this.isDisposed) {
        this._isWanted = false;
        await this._look();
      }
    } catch (error) {
      this._error.textContent = wordsOf(error);
    } finally {
      this._isAsking = false;
    }
  }

  private async _look(): Promise<void> {
    let told = await readEnvironments(this._settings);
    this._take(told);
    let pause = LOOK_MILLISECONDS;
    let failures = 0;
    while (told.task?.state === 'running' && !this.isDisposed) {
      await new Promise<void>(resolve => {
        this._wake = resolve;
        setTimeout(resolve, this.isVisible ? pause : Math.max(pause, UNSEEN_MILLISECONDS));
      });
      if (document.hidden) {
        continue;
      }
      try {
        told = await readEnvironments(this._settings);
      } catch (error) {
        if (!isAway(error) || ++failures > MOST_FAILURES) {
          throw error;
        }
        // What is being made goes on.
        pause = Math.min(2 * pause, AWAY_MILLISECONDS);
        continue;
      }
      failures = 0;
      pause = LOOK_MILLISECONDS;
      this._take(told);
      if (told.task?.state !== 'running') {
        this._changed();
      }
    }
  }

  private _take(told: IEnvironments): void {
    keepFocus(this.node, () => this._present(told), this._status);
  }

  private _present(told: IEnvironments): void {
    const about = told.folders.map(folder => element('p', '', folderText(folder, this._texts)));
    this._about.replaceChildren(...about);
    const isBusy = told.task?.state === 'running';
    const listed = JSON.stringify([told.environments, isBusy]);
    if (listed !== this._listed) {
      // A button that is replaced loses the focus.
      this._listed = listed;
      this._list.replaceChildren(...told.environments.map(one => this._row(one, isBusy)));
      if (told.environments.length === 0) {
        this._list.replaceChildren(element('li', '', viewLabels(this._texts).none));
      }
    }
    this._offer(told);
    this._offerFolders(told.folders);
    this._create.disabled = isBusy;
    this._show(told.task);
  }

  private _show(task: ITask | null): void {
    const isBusy = task?.state === 'running';
    this._stop.hidden = !isBusy;
    this._said.hidden = !task?.said;
    if (this._said.textContent !== (task?.said ?? '')) {
      this._said.textContent = task?.said ?? '';
      this._said.scrollTop = this._said.scrollHeight;
    }
    const status = task ? progress(task, this._texts) : '';
    if (this._status.textContent !== status) {
      this._status.textContent = status;
    }
    this._status.dataset.state = task?.state ?? '';
  }

  private _row(one: IOwnEnvironment, isBusy: boolean): HTMLElement {
    const texts = this._texts;
    const row = element('li');
    row.dataset.name = one.name;
    const about = element('div');
    about.append(element('strong', '', one.name), element('small', '', descriptionOf(one, texts)));
    if (one.trouble) {
      about.append(element('small', '', one.trouble));
    }
    const button = element('button', 'portal-Button', viewLabels(texts).remove);
    button.type = 'button';
    button.setAttribute('aria-label', removeLabel(one.name, texts));
    button.disabled = isBusy;
    button.addEventListener('click', () => void this._remove(one));
    row.append(about, button);
    return row;
  }

  private _form(): HTMLElement {
    const labels = formLabels(this._texts);
    const form = element('form');
    form.append(
      element('h3', '', labels.title),
      label(this._name, labels.name),
      this._name,
      label(this._on, labels.base),
      this._on,
      label(this._in, labels.folder),
      this._in,
      label(this._packages, labels.packages),
      this._packages,
      this._create
    );
    this._packages.placeholder = PACKAGES_EXAMPLE;
    this._create.textContent = labels.create;
    this._create.type = 'submit';
    form.addEventListener('submit', event => {
      event.preventDefault();
      void this._make();
    });
    return form;
  }

  private _offer({ bases, conda }: IEnvironments): void {
    if (this._on.options.length > 0) {
      return;
    }
    for (const base of bases) {
      this._on.add(new Option(`${base.title} (${base.on.join(', ')})`, JSON.stringify(base.on)));
    }
    const labels = formLabels(this._texts);
    this._on.add(new Option(labels.noBase, '[]'));
    if (conda) {
      this._on.add(new Option(labels.conda, CONDA));
    }
  }

  private _offerFolders(folders: IEnvironmentFolder[]): void {
    const names = folders.filter(folder => !folder.trouble).map(folder => folder.name);
    const offered = Array.from(this._in.options, option => option.value);
    if (names.join() === offered.join()) {
      return;
    }
    const chosen = this._in.value;
    this._in.replaceChildren();
    for (const folder of folders.filter(one => names.includes(one.name))) {
      const isChosen = folder.name === chosen;
      this._in.add(new Option(folderLabel(folder), folder.name, isChosen, isChosen));
    }
  }

  private async _make(): Promise<void> {
    const name = this._name.value.trim();
    if (!isName(name)) {
      this._error.textContent = nameRule(this._texts);
      this._name.focus();
      return;
    }
    const conda = this._on.value === CONDA;
    const on = conda ? [] : (JSON.parse(this._on.value || '[]') as string[]);
    const packages = packagesIn(this._packages.value);
    const order = { name, on, packages, in: this._in.value, conda };
    await this._do(() => createEnvironment(this._settings, order));
  }

  private async _remove(one: IOwnEnvironment): Promise<void> {
    const texts = this._texts;
    const answer = await showDialog({
      title: removeQuestion(one.name, texts),
      body: removeLoss(texts),
      buttons: [Dialog.cancelButton(), Dialog.warnButton({ label: viewLabels(texts).remove })]
    });
    if (answer.button.accept) {
      await this._do(() => removeEnvironment(this._settings, one.name));
    }
  }

  private async _do(work: () => Promise<unknown>): Promise<void> {
    this._error.textContent = '';
    try {
      await work();
    } catch (error) {
      this._error.textContent = wordsOf(error);
    }
    await this.refresh();
  }

  private _name: HTMLInputElement;
  private _on: HTMLSelectElement;
  private _in: HTMLSelectElement;
  private _packages: HTMLInputElement;
  private _about = element('div');
  private _list = element('ul');
  private _listed = '';
  private _error = element('p');
  private _status = element('p');
  private _said = element('pre');
  private _create = element('button', 'portal-Button');
  private _stop = element('button', 'portal-Button');
  private _wake: () => void = () => undefined;
  private _isAsking = false;
  private _isWanted = false;
}

function field(id: string): HTMLInputElement {
  const made = document.createElement('input');
  made.id = id;
  made.autocomplete = 'off';
  made.spellcheck = false;
  return made;
}

function label(of: HTMLElement, text: string): HTMLLabelElement {
  const made = element('label', '', text);
  made.htmlFor = of.id;
  return made;
}
