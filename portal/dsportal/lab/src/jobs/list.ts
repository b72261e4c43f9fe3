// The Slurm panel: my jobs, how they ended, and what is free.

import type { TranslationBundle } from '@jupyterlab/translation';
import { refreshIcon } from '@jupyterlab/ui-components';
import type { Message } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';

import { element, keepFocus } from '../common/elements';
import { byJob, endedJobs, hasStarted, lookOf, open } from './job';
import type { IFree, IJob } from './job';
import { bar, button } from './style';
import type { IJobs } from './server';
import {
  cancelButtonLabel,
  freeText,
  jobsPanelLabels,
  logButtonLabel,
  nameOf,
  placeOf,
  reasonOf,
  rowLabels,
  staleness,
  stateOf,
  timeOf
} from './words';

/** What the panel's buttons do. */
export interface IActions {
  refresh(): void;
  cancel(job: IJob): void;
  openLog(job: IJob): void;
}

/** Shows jobs; it is told what they are. */
export class JobList extends Widget {
  constructor(
    private _texts: TranslationBundle,
    private _actions: IActions
  ) {
    super();
    const labels = jobsPanelLabels(_texts);
    this.addClass('portal-Slurm');
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', labels.region);
    this._note.setAttribute('role', 'status');
    this._refresh = button('', () => _actions.refresh());
    refreshIcon.element({ container: this._refresh, stylesheet: 'menuItem' });
    this._refresh.setAttribute('aria-label', labels.refresh);
    this._refresh.title = labels.refresh;
    this._refresh.classList.add('portal-mod-plain');
    const head = element('div', 'portal-Slurm-head');
    head.append(element('h2', '', labels.jobs), this._refresh);
    this._endedTitle = element('h2', '', labels.ended);
    this._none.textContent = labels.loading;
    this._endedTitle.hidden = this._note.hidden = this._room.hidden = true;
    const jobs = element('div', 'portal-Slurm-jobs');
    jobs.append(this._note, this._none, this._open, this._endedTitle, this._ended);
    this._room.append(element('h2', '', labels.free), this._free);
    this.node.append(head, jobs, this._room);
  }

  /** Called when it comes into sight. */
  onShown: () => void = () => undefined;

  /** Show what is known. */
  present(told: IJobs): void {
    // The buttons of a job that ends go, or move with its row.
    keepFocus(this.node, () => this._show(told), this._refresh);
  }

  /** Say that nothing can be known. */
  fail(words: string): void {
    this._say(words);
  }

  /** Take note that a job is being cancelled, until the cluster says the same. */
  cancelling(job: IJob): void {
    this._cancelled.add(job.id);
    const row = this._rows.get(job.id);
    const show = (): void => row?.present(job, Date.now() / 1000, true, false);
    keepFocus(this.node, show, this._refresh);
  }

  protected override onAfterShow(msg: Message): void {
    super.onAfterShow(msg);
    this.onShown();
  }

  private _show(told: IJobs): void {
    const [running, over] = [open(told.jobs), endedJobs(told.jobs)];
    this._rows = byJob(told.jobs, this._rows, () => new JobRow(this._texts, this._actions));
    this._present(this._open, running, told);
    this._present(this._ended, over, told);
    this._none.hidden = running.length > 0;
    this._none.textContent = jobsPanelLabels(this._texts).none;
    this._endedTitle.hidden = over.length === 0;
    this._presentFree(told.free);
    this._say(staleness(told, this._texts));
  }

  private _present(list: HTMLElement, jobs: IJob[], told: IJobs): void {
    const shown = new Set(jobs.map(job => job.id));
    for (const node of [...list.children] as HTMLElement[]) {
      if (!shown.has(node.dataset.job ?? '')) {
        node.remove();
      }
    }
    jobs.forEach((job, at) => {
      const row = this._rows.get(job.id)!;
      if (job.is_over) {
        this._cancelled.delete(job.id);
      }
      row.present(job, told.now, this._cancelled.has(job.id), job.id === told.session_job);
      // What stays in its place keeps the keyboard's focus.
      if (list.children[at] !== row.node) {
        list.insertBefore(row.node, list.children[at] ?? null);
      }
    });
  }

  private _presentFree(free: IFree[] | null): void {
    const texts = this._texts;
    this._room.hidden = !free?.length;
    const rows = (free ?? []).map(found => {
      const row = element('li');
      const line = element('div');
      const name = [found.type, found.partitions.join(', ')];
      const words = element('span', '', name.filter(Boolean).join(' · '));
      words.title = found.partitions.join(', ');
      line.append(words, element('span', '', freeText(found, texts)));
      row.append(line, bar(found.total ? found.free / found.total : 0));
      return row;
    });
    this._free.replaceChildren(...rows);
  }

  private _say(words: string): void {
    this._note.hidden = !words;
    if (this._note.textContent !== words) {
      this._note.textContent = words;
    }
  }

  private _note = element('p', 'portal-Slurm-note');
  private _none = element('p');
  private _open = element('ul');
  private _ended = element('ul');
  private _room = element('div', 'portal-Slurm-room');
  private _free = element('ul');
  private _endedTitle: HTMLElement;
  private _refresh: HTMLButtonElement;
  private _rows = new Map<string, JobRow>();
  private _cancelled = new Set<string>();
}

/** One job. */
class JobRow {
  constructor(
    private _texts: TranslationBundle,
    actions: IActions
  ) {
    const head = element('div', 'portal-Job-head');
    head.append(this._name, this._state);
    const labels = rowLabels(_texts);
    this._log = button(labels.log, () => this._job && actions.openLog(this._job));
    this._cancel = button(labels.cancel, () => this._job && actions.cancel(this._job));
    const buttons = element('div', 'portal-Job-buttons');
    buttons.append(this._log, this._cancel);
    this.node.append(head, this._place, this._time, this._reason, buttons);
  }

  readonly node = element('li', 'portal-Job');

  present(job: IJob, now: number, isCancelled: boolean, isThis: boolean): void {
    const texts = this._texts;
    const labels = rowLabels(texts);
    this._job = job;
    const name = isThis ? labels.session : nameOf(job, texts);
    this.node.dataset.job = job.id;
    this.node.dataset.look = lookOf(job);
    set(this._name, name);
    this._name.title = name;
    set(this._state, isCancelled ? labels.cancelling : stateOf(job, texts));
    set(this._place, placeOf(job, texts));
    set(this._time, timeOf(job, now, texts));
    const reason = reasonOf(job, texts);
    set(this._reason, isThis ? labels.howToEnd : reason);
    this._log.hidden = !hasStarted(job) || isThis;
    this._cancel.hidden = job.is_over || isThis;
    this._cancel.disabled = isCancelled;
    this._log.setAttribute('aria-label', logButtonLabel(job.id, name, texts));
    this._cancel.setAttribute('aria-label', cancelButtonLabel(job.id, name, texts));
  }

  private _job: IJob | null = null;
  private _name = element('span', 'portal-Job-name');
  private _state = element('span', 'portal-Job-state');
  private _place = element('div', 'portal-Job-line');
  private _time = element('div', 'portal-Job-line');
  private _reason = element('div', 'portal-Job-line portal-mod-reason');
  private _log: HTMLButtonElement;
  private _cancel: HTMLButtonElement;
}

function set(node: HTMLElement, text: string): void {
  node.hidden = !text;
  if (node.textContent !== text) {
    node.textContent = text;
  }
}
