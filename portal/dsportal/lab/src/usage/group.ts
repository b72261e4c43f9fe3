// What belongs together in "My GPUs", a GPU or the session: its figures, each with its chart.

import type { TranslationBundle } from '@jupyterlab/translation';

import { hour } from '../common/time';
import { Chart } from './chart';
import { columnSummary, shownSeconds, type Column } from './data';
import { chartBegin, lineWords, usagePanelLabels } from './words';

/** A figure of the panel: one chart with a line or two, each with its value in words. */
export interface IFigure {
  lines: { label: string; column: Column }[];
  top: number;
  limit: number | null;
  write: (value: number | null) => string;
  /** For a table: without what is held, which its heading says. */
  brief: (value: number | null) => string;
  held: string | null;
}

/** What belongs together: a GPU, or the session. */
export interface IGroup {
  title: string;
  detail: string;
  hint: string | null;
  figures: IFigure[];
}

/** The elements of a group. */
export class Group {
  readonly node = document.createElement('section');

  constructor(
    group: IGroup,
    private _texts: TranslationBundle
  ) {
    this._hint.className = 'dsp-Use-hint';
    const axis = document.createElement('p');
    axis.className = 'dsp-Use-axis';
    axis.setAttribute('aria-hidden', 'true');
    axis.append(this._begin, span(usagePanelLabels(_texts).end));
    this._figures = group.figures.map(figure => new Figure(figure, _texts));
    const parts = this._figures.map(figure => figure.node);
    this.node.append(this._title, this._hint, ...parts, axis);
  }

  present(group: IGroup, at: number[]): void {
    this._title.replaceChildren(group.title, ' ', small(group.detail));
    this._hint.textContent = group.hint;
    this._hint.hidden = group.hint === null;
    this._begin.textContent = chartBegin(shownSeconds(at), this._texts);
    group.figures.forEach((figure, place) =>
      this._figures[place]?.present(group.title, figure, at)
    );
  }

  private _title = document.createElement('h3');
  private _hint = document.createElement('p');
  private _begin = span('');
  private _figures: Figure[];
}

/** The elements of a figure. */
class Figure {
  readonly node = document.createElement('div');

  constructor(
    figure: IFigure,
    private _texts: TranslationBundle
  ) {
    this._values = figure.lines.map(() => document.createElement('strong'));
    const marks = figure.lines.length > 1 ? ['dsp-Use-mark', 'dsp-Use-mark dsp-mod-second'] : [];
    const lines = figure.lines.map(({ label }, at) => {
      const line = document.createElement('p');
      line.className = 'dsp-Use-figure';
      const name = span(label);
      name.className = marks[at] ?? '';
      line.append(name, this._values[at] as HTMLElement);
      return line;
    });
    this.node.append(...lines, this._chart.node);
  }

  present(title: string, figure: IFigure, at: number[]): void {
    this._figure = figure;
    this._at = at;
    this._write(null);
    const words = figure.lines.map(({ label, column }) => {
      const { now, highest } = columnSummary(column);
      return lineWords(title, label, figure.write(now), figure.write(highest), this._texts);
    });
    this._chart.show({
      at,
      columns: figure.lines.map(({ column }) => column),
      top: figure.top,
      limit: figure.limit,
      words: words.join('. ')
    });
  }

  /** Write the values of a sample, or the newest. */
  private _write(place: number | null): void {
    const moment = place === null ? undefined : this._at[place];
    this._figure?.lines.forEach(({ column }, at) => {
      const words = this._figure?.write(column.at(place ?? -1) ?? null) ?? '';
      const value = this._values[at] as HTMLElement;
      value.textContent = moment === undefined ? words : `${hour(moment)} · ${words}`;
    });
  }

  private _values: HTMLElement[];
  private _chart = new Chart(place => this._write(place));
  private _figure: IFigure | null = null;
  private _at: number[] = [];
}

function span(text: string): HTMLElement {
  const node = document.createElement('span');
  node.textContent = text;
  return node;
}

export function small(text: string): HTMLElement {
  const node = document.createElement('small');
  node.textContent = text;
  return node;
}
