// The side panel "My GPUs".

import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';

import { bytes } from '../common/bytes';
import { columnSummary, roundUp, type Column, type IGpu, type ISessionUse } from './data';
import { Group, small, type IGroup } from './group';
import {
  columnLabels,
  cores,
  figureLabels,
  gpuDetail,
  gpuTitle,
  hint,
  missing,
  number,
  outdated,
  percent,
  rate,
  rowLabel,
  usagePanelLabels,
  usedOfHeld
} from './words';

/** The panel. */
export class UsePanel extends Widget {
  constructor(private _texts: TranslationBundle) {
    super();
    this.addClass('dsp-Use');
    this._note.className = 'dsp-Use-note';
    this._details.append(this._table);
    const summaryLine = document.createElement('summary');
    summaryLine.textContent = usagePanelLabels(_texts).table;
    this._details.prepend(summaryLine);
    this.node.append(this._heading(), this._note, this._groups, this._details);
    this._details.hidden = true;
  }

  /** Called when the panel comes into sight, or goes. */
  onSight: () => void = () => undefined;

  present(use: ISessionUse): void {
    const note = missing(use, this._texts);
    this._note.textContent = note ?? '';
    this._note.hidden = note === null;
    const groups = [...use.gpus.each.map((gpu, at) => this._gpu(use, gpu, at)), this._session(use)];
    this._keep(groups);
    groups.forEach((group, at) => this._shown[at]?.present(group, use.samples.at));
    this._fill(groups);
    this._details.hidden = false;
  }

  /** Say that what is shown is old. */
  presentOutdated(): void {
    this._note.textContent = outdated(this._texts);
    this._note.hidden = false;
  }

  protected override onAfterShow(): void {
    this.onSight();
  }

  protected override onAfterHide(): void {
    this.onSight();
  }

  private _heading(): HTMLElement {
    const labels = usagePanelLabels(this._texts);
    const heading = document.createElement('h2');
    heading.append(labels.title, ' ', small(labels.subtitle));
    return heading;
  }

  private _gpu(use: ISessionUse, gpu: IGpu, at: number): IGroup {
    const texts = this._texts;
    const samples = use.samples.gpus[at];
    const total = gpu.memory_total_bytes;
    const [degrees, watts] = [samples?.celsius.at(-1), samples?.watts.at(-1)];
    const labels = figureLabels(texts);
    const write = (value: number | null): string => percent(value, texts);
    return {
      title: gpuTitle(at, texts),
      detail: gpuDetail(gpu.name, degrees, watts, texts),
      hint: hint(at, gpu, texts),
      figures: [
        {
          lines: [{ label: labels.gpuUse, column: samples?.percent ?? [] }],
          top: 100,
          limit: null,
          write,
          brief: write,
          held: null
        },
        {
          lines: [{ label: labels.memory, column: samples?.memory_bytes ?? [] }],
          top: 1.1 * (total ?? roundUp(highest(samples?.memory_bytes), 1024)),
          limit: total,
          write: value => usedOfHeld(value, total, bytes, texts),
          brief: value => usedOfHeld(value, null, bytes, texts),
          held: total === null ? null : bytes(total)
        }
      ]
    };
  }

  private _session(use: ISessionUse): IGroup {
    const texts = this._texts;
    const { samples, held } = use;
    const rates = [...samples.read_rate, ...samples.write_rate];
    const labels = figureLabels(texts);
    const write = (value: number | null): string => rate(value, texts);
    return {
      title: labels.session,
      detail: '',
      hint: null,
      figures: [
        {
          lines: [{ label: labels.cpu, column: samples.cores }],
          top: 1.1 * Math.max(held.cores ?? 0, roundUp(highest(samples.cores))),
          limit: held.cores,
          write: value => cores(value, held.cores, texts),
          brief: value => usedOfHeld(value, null, number, texts),
          held: held.cores === null ? null : cores(held.cores, null, texts)
        },
        {
          lines: [{ label: labels.memory, column: samples.memory_bytes }],
          top: 1.1 * (held.memory_bytes ?? roundUp(highest(samples.memory_bytes), 1024)),
          limit: held.memory_bytes,
          write: value => usedOfHeld(value, held.memory_bytes, bytes, texts),
          brief: value => usedOfHeld(value, null, bytes, texts),
          held: held.memory_bytes === null ? null : bytes(held.memory_bytes)
        },
        {
          lines: [
            { label: labels.read, column: samples.read_rate },
            { label: labels.written, column: samples.write_rate }
          ],
          top: Math.max(2 ** 20, roundUp(highest(rates), 1024)),
          limit: null,
          write,
          brief: write,
          held: null
        }
      ]
    };
  }

  /** Keep the elements as long as their number fits: the pointer may be over one. */
  private _keep(groups: IGroup[]): void {
    if (this._shown.length !== groups.length) {
      this._shown = groups.map(group => new Group(group, this._texts));
      this._groups.replaceChildren(...this._shown.map(group => group.node));
    }
  }

  private _fill(groups: IGroup[]): void {
    const labels = columnLabels(this._texts);
    const head = document.createElement('thead');
    head.append(
      row(cell('td', ''), [
        cell('th', labels.now, 'col'),
        cell('th', labels.mean, 'col'),
        cell('th', labels.peak, 'col')
      ])
    );
    this._table.replaceChildren(head, ...groups.map(group => this._rows(group)));
  }

  private _rows({ title, figures }: IGroup): HTMLElement {
    const body = document.createElement('tbody');
    const name = cell('th', title, 'rowgroup');
    name.colSpan = 4;
    body.append(row(name, []));
    for (const { lines, brief, held } of figures) {
      for (const { label, column } of lines) {
        const words = rowLabel(label, held, this._texts);
        const { now, average, highest } = columnSummary(column);
        const cells = [now, average, highest].map(value => cell('td', brief(value)));
        body.append(row(cell('th', words, 'row'), cells));
      }
    }
    return body;
  }

  private _note = document.createElement('p');
  private _groups = document.createElement('div');
  private _details = document.createElement('details');
  private _table = document.createElement('table');
  private _shown: Group[] = [];
}

function highest(column: Column = []): number {
  return columnSummary(column).highest ?? 0;
}

function row(first: HTMLElement, others: HTMLElement[]): HTMLElement {
  const node = document.createElement('tr');
  node.append(first, ...others);
  return node;
}

/** A cell of a table; `scope` says of what it is the heading. */
function cell(tag: 'td' | 'th', text: string, scope = ''): HTMLTableCellElement {
  const node = document.createElement(tag);
  node.textContent = text;
  if (scope) {
    node.setAttribute('scope', scope);
  }
  return node;
}
