// What belongs together in "My GPUs", a GPU or the session: its figures, each with its chart.

import type { TranslationBundle } from '@jupyterlab/translation';

import { hour } from './time';
import { Chart } from './use_chart';
import { summary, type Column } from './use_data';

/** A figure of the panel: how it is drawn, and how it is written. */
export interface IFigure {
  label: string;
  columns: Column[];
  top: number;
  limit: number | null;
  /** Write values, one of each column. */
  write: (values: (number | null)[]) => string;
  /** The lines, where there are two. */
  legend?: string[];
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

  constructor(group: IGroup, texts: TranslationBundle) {
    this._hint.className = 'dsp-Use-hint';
    const axis = document.createElement('p');
    axis.className = 'dsp-Use-axis';
    axis.setAttribute('aria-hidden', 'true');
    axis.append(span(texts.__('1 h ago')), span(texts.__('now')));
    this._figures = group.figures.map(figure => new Figure(figure, texts));
    const parts = this._figures.map(figure => figure.node);
    this.node.append(this._title, this._hint, ...parts, axis);
  }

  present(group: IGroup, at: number[]): void {
    this._title.replaceChildren(group.title, ' ', small(group.detail));
    this._hint.textContent = group.hint;
    this._hint.hidden = group.hint === null;
    group.figures.forEach((figure, place) =>
      this._figures[place]?.present(group.title, figure, at)
    );
  }

  private _title = document.createElement('h3');
  private _hint = document.createElement('p');
  private _figures: Figure[];
}

/** The elements of a figure: its label, its value in words, its chart. */
class Figure {
  readonly node = document.createElement('div');

  constructor(
    figure: IFigure,
    private _texts: TranslationBundle
  ) {
    const line = document.createElement('p');
    line.className = 'dsp-Use-figure';
    line.append(span(figure.label), this._value);
    this.node.append(line, this._chart.node);
    (figure.legend ?? []).forEach((name, at) => {
      const mark = small(name);
      mark.className = at === 0 ? 'dsp-Use-mark' : 'dsp-Use-mark dsp-mod-second';
      line.insertBefore(mark, this._value);
    });
  }

  present(title: string, figure: IFigure, at: number[]): void {
    this._figure = figure;
    this._at = at;
    this._write(null);
    const texts = this._texts;
    const highest = figure.write(figure.columns.map(column => summary(column).highest));
    this._chart.show({
      at,
      columns: figure.columns,
      top: figure.top,
      limit: figure.limit,
      words: texts.__(
        '%1, %2: now %3; highest of the last hour %4',
        title,
        figure.label,
        this._value.textContent,
        highest
      )
    });
  }

  /** Write the value of a sample, or the newest. */
  private _write(place: number | null): void {
    const values = this._figure?.columns.map(column => column.at(place ?? -1) ?? null) ?? [];
    const words = this._figure?.write(values) ?? '';
    const moment = place === null ? undefined : this._at[place];
    this._value.textContent =
      moment === undefined ? words : this._texts.__('%1: %2', hour(moment), words);
  }

  private _value = document.createElement('strong');
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
