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
  type IBase,
  type IEnvironments,
  type IOwnEnvironment,
  type ITask
} from './server';
import { bytes } from '../common/bytes';
import { element } from '../common/elements';
import { wordsOf } from '../common/server';

const LOOK_MILLISECONDS = 1_000;

/** Shows, makes and removes environments. */
export class EnvironmentsView extends Widget {
  constructor(
    private _settings: ServerConnection.ISettings,
    private _texts: TranslationBundle,
    private _changed: () => void
  ) {
    super();
    this.addClass('portal-Environments');
    this._name = field('portal-environment-name');
    this._name.required = true;
    this._on = document.createElement('select');
    this._on.id = 'portal-environment-on';
    this._packages = field('portal-environment-packages');
    this._error.setAttribute('role', 'alert');
    this._status.setAttribute('role', 'status');
    this._said.tabIndex = 0;
    this._said.setAttribute('aria-label', _texts.__('What pip says'));
    this._stop.textContent = _texts.__('Stop');
    this._stop.type = 'button';
    this._stop.addEventListener('click', () => void this._do(() => stopTask(_settings)));
    this.node.append(
      element('h2', '', _texts.__('My Environments')),
      element(
        'p',
        '',
        _texts.__(
          'Install your own packages on top of what is shipped. Each is a kernel here, and `module load NAME` in terminals and jobs.'
        )
      ),
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
    if (this._isAsking || this.isDisposed) {
      return;
    }
    this._isAsking = true;
    try {
      let told = await readEnvironments(this._settings);
      this._take(told);
      while (told.task?.state === 'running' && !this.isDisposed) {
        await new Promise(resolve => setTimeout(resolve, LOOK_MILLISECONDS));
        told = await readEnvironments(this._settings);
        this._take(told);
        if (told.task?.state !== 'running') {
          this._changed();
        }
      }
    } catch (error) {
      this._error.textContent = wordsOf(error);
    } finally {
      this._isAsking = false;
    }
  }

  private _take(told: IEnvironments): void {
    const texts = this._texts;
    const free = told.storage ? texts.__('%1 free', bytes(told.storage.free)) : '';
    const quota = told.storage?.is_quota
      ? texts.__('of your quota of %1', bytes(told.storage.size))
      : '';
    const room = [free, quota].filter(Boolean).join(' ');
    this._about.textContent = texts.__('They lie in %1.', told.folder) + (room ? ` ${room}.` : '');
    const isBusy = told.task?.state === 'running';
    this._list.replaceChildren(...told.environments.map(one => this._row(one, isBusy)));
    if (told.environments.length === 0) {
      this._list.replaceChildren(element('li', '', texts.__('No environments yet.')));
    }
    this._offer(told.bases);
    this._create.disabled = isBusy;
    this._show(told.task);
  }

  private _show(task: ITask | null): void {
    const texts = this._texts;
    const isBusy = task?.state === 'running';
    this._stop.hidden = !isBusy;
    this._said.hidden = !task?.said;
    if (this._said.textContent !== (task?.said ?? '')) {
      this._said.textContent = task?.said ?? '';
      this._said.scrollTop = this._said.scrollHeight;
    }
    const words = {
      create: {
        running: texts.__('Creating %1…', task?.name ?? ''),
        done: texts.__('%1 is ready.', task?.name ?? ''),
        failed: texts.__('%1 was not created.', task?.name ?? '')
      },
      remove: {
        running: texts.__('Removing %1…', task?.name ?? ''),
        done: texts.__('%1 is removed.', task?.name ?? ''),
        failed: texts.__('%1 was not removed.', task?.name ?? '')
      }
    };
    const status = task ? words[task.action][task.state] : '';
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
    const size = one.size === null ? texts.__('size not known') : bytes(one.size);
    const facts = one.on ? texts.__('on %1', one.on) : texts.__('not finished');
    about.append(
      element('strong', '', one.name),
      element('small', '', [facts, size, one.packages.join(' ')].filter(Boolean).join(' · '))
    );
    if (one.trouble) {
      about.append(element('small', '', one.trouble));
    }
    const button = element('button', 'portal-Button', texts.__('Remove'));
    button.type = 'button';
    button.setAttribute('aria-label', texts.__('Remove %1', one.name));
    button.disabled = isBusy;
    button.addEventListener('click', () => void this._remove(one));
    row.append(about, button);
    return row;
  }

  private _form(): HTMLElement {
    const texts = this._texts;
    const form = element('form');
    form.append(
      element('h3', '', texts.__('New environment')),
      label(this._name, texts.__('Name')),
      this._name,
      label(this._on, texts.__('On top of')),
      this._on,
      label(this._packages, texts.__('Packages')),
      this._packages,
      this._create
    );
    this._packages.placeholder = 'einops timm==1.0.31';
    this._create.textContent = texts.__('Create');
    this._create.type = 'submit';
    form.addEventListener('submit', event => {
      event.preventDefault();
      void this._make();
    });
    return form;
  }

  private _offer(bases: IBase[]): void {
    if (this._on.options.length > 0) {
      return;
    }
    for (const base of bases) {
      this._on.add(new Option(`${base.title} (${base.on.join(', ')})`, JSON.stringify(base.on)));
    }
    this._on.add(new Option(this._texts.__('Plain Python, all packages my own'), '[]'));
  }

  private async _make(): Promise<void> {
    const name = this._name.value.trim();
    if (!isName(name)) {
      this._error.textContent = this._texts.__(
        'A name has letters, digits and . _ - and begins with a letter or a digit.'
      );
      this._name.focus();
      return;
    }
    const on = JSON.parse(this._on.value || '[]') as string[];
    const packages = packagesIn(this._packages.value);
    await this._do(() => createEnvironment(this._settings, { name, on, packages }));
  }

  private async _remove(one: IOwnEnvironment): Promise<void> {
    const texts = this._texts;
    const answer = await showDialog({
      title: texts.__('Remove %1?', one.name),
      body: texts.__('All packages in it are deleted. Notebooks that use its kernel need another.'),
      buttons: [Dialog.cancelButton(), Dialog.warnButton({ label: texts.__('Remove') })]
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
  private _packages: HTMLInputElement;
  private _about = element('p');
  private _list = element('ul');
  private _error = element('p');
  private _status = element('p');
  private _said = element('pre');
  private _create = element('button', 'portal-Button');
  private _stop = element('button', 'portal-Button');
  private _isAsking = false;
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
