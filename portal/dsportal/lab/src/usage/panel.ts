// The side panel "My GPUs".

import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';

import { bytes } from '../common/bytes';
import {
  cores,
  hint,
  missing,
  number,
  roundUp,
  share,
  summary,
  type Column,
  type IGpu,
  type IUse
} from './data';
import { Group, small, type IGroup } from './group';

/** The panel. */
export class UsePanel extends Widget {
  constructor(private _texts: TranslationBundle) {
    super();
    this.addClass('dsp-Use');
    this._note.className = 'dsp-Use-note';
    this._details.append(this._table);
    const summaryLine = document.createElement('summary');
    summaryLine.textContent = _texts.__('As a table');
    this._details.prepend(summaryLine);
    this.node.append(this._heading(), this._note, this._groups, this._details);
    this._details.hidden = true;
  }

  /** Called when the panel comes into sight, or goes. */
  onSight: () => void = () => undefined;

  present(use: IUse): void {
    const note = missing(use, this._texts);
    this._note.textContent = note ?? '';
    this._note.hidden = note === null;
    const groups = [...use.gpus.each.map((gpu, at) => this._gpu(use, gpu, at)), this._session(use)];
    this._keep(groups);
    groups.forEach((group, at) => this._shown[at]?.present(group, use.samples.at));
    this._fill(groups);
    this._details.hidden = false;
  }

  protected override onAfterShow(): void {
    this.onSight();
  }

  protected override onAfterHide(): void {
    this.onSight();
  }

  private _heading(): HTMLElement {
    const heading = document.createElement('h2');
    heading.append(this._texts.__('My GPUs'), ' ', small(this._texts.__('the last hour')));
    return heading;
  }

  private _gpu(use: IUse, gpu: IGpu, at: number): IGroup {
    const texts = this._texts;
    const samples = use.samples.gpus[at];
    const total = gpu.memory_total_bytes;
    const [degrees, watts] = [samples?.celsius.at(-1), samples?.watts.at(-1)];
    const more = [
      gpu.name,
      degrees == null ? null : texts.__('%1 °C', degrees),
      watts == null ? null : texts.__('%1 W', watts)
    ];
    const percent = (value: number | null) =>
      value === null ? '–' : texts.__('%1 %', Math.round(value));
    return {
      title: texts.__('GPU %1', at),
      detail: more.filter(part => part).join(' · '),
      hint: hint(at, gpu, texts),
      figures: [
        {
          lines: [{ label: texts.__('In use'), column: samples?.percent ?? [] }],
          top: 100,
          limit: null,
          write: percent,
          brief: percent,
          held: null
        },
        {
          lines: [{ label: texts.__('Memory'), column: samples?.memory_bytes ?? [] }],
          top: 1.1 * (total ?? roundUp(highest(samples?.memory_bytes), 1024)),
          limit: total,
          write: value => share(value, total, bytes, texts),
          brief: value => share(value, null, bytes, texts),
          held: total === null ? null : bytes(total)
        }
      ]
    };
  }

  private _session(use: IUse): IGroup {
    const texts = this._texts;
    const { samples, held } = use;
    const rates = [...samples.read_rate, ...samples.write_rate];
    const rate = (value: number | null) => (value === null ? '–' : texts.__('%1/s', bytes(value)));
    return {
      title: texts.__('This session'),
      detail: '',
      hint: null,
      figures: [
        {
          lines: [{ label: texts.__('CPU'), column: samples.cores }],
          top: 1.1 * Math.max(held.cores ?? 0, roundUp(highest(samples.cores))),
          limit: held.cores,
          write: value => cores(value, held.cores, texts),
          brief: value => share(value, null, number, texts),
          held: held.cores === null ? null : cores(held.cores, null, texts)
        },
        {
          lines: [{ label: texts.__('Memory'), column: samples.memory_bytes }],
          top: 1.1 * (held.memory_bytes ?? roundUp(highest(samples.memory_bytes), 1024)),
          limit: held.memory_bytes,
          write: value => share(value, held.memory_bytes, bytes, texts),
          brief: value => share(value, null, bytes, texts),
          held: held.memory_bytes === null ? null : bytes(held.memory_bytes)
        },
        {
          lines: [
            { label: texts.__('Read from files'), column: samples.read_rate },
            { label: texts.__('Written to files'), column: samples.write_rate }
          ],
          top: Math.max(2 ** 20, roundUp(highest(rates), 1024)),
          limit: null,
          write: rate,
          brief: rate,
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
    const texts = this._texts;
    const head = document.createElement('thead');
    head.append(
      row(cell('td', ''), [
        cell('th', texts.__('Now'), 'col'),
        cell('th', texts.__('Mean'), 'col'),
        cell('th', texts.__('Peak'), 'col')
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
        const words = held === null ? label : this._texts.__('%1 (of %2)', label, held);
        const { now, average, highest } = summary(column);
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
  return summary(column).highest ?? 0;
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
