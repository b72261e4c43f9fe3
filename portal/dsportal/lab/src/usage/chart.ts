// A small chart of one or two figures over the last hour, as SVG.

import { shownSeconds, type Column } from './data';

const SVG = 'http://www.w3.org/2000/svg';
const WIDTH = 1000;
const HEIGHT = 100;
/** Above and below, so that a line at the edge is seen. */
const MARGIN = 4;
/** A longer pause between samples is a gap. */
const GAP_SECONDS = 60;

/** What a chart shows. */
export interface IShown {
  at: number[];
  /** The second one is dashed. */
  columns: Column[];
  /** The value at the upper end. */
  top: number;
  /** A line at what is held. */
  limit: number | null;
  /** The chart in words. */
  words: string;
}

/** One chart. Its element keeps, what it shows changes. */
export class Chart {
  readonly node: SVGSVGElement = make('svg', {
    class: 'dsp-Use-chart',
    role: 'img',
    viewBox: `0 ${-MARGIN} ${WIDTH} ${HEIGHT + 2 * MARGIN}`,
    preserveAspectRatio: 'none'
  });

  /** `onPoint` hears which sample the pointer is at. */
  constructor(onPoint: (at: number | null) => void) {
    this.node.addEventListener('pointermove', event => {
      const at = this._nearest(event);
      this._place(at);
      onPoint(at);
    });
    this.node.addEventListener('pointerleave', () => {
      this._place(null);
      onPoint(null);
    });
  }

  show(shown: IShown): void {
    this._shown = shown;
    this.node.setAttribute('aria-label', shown.words);
    const [first = []] = shown.columns;
    const parts = [make('path', { class: 'dsp-Use-area', d: area(this._points(first)) })];
    if (shown.limit !== null) {
      const y = this._y(shown.limit);
      parts.push(make('path', { class: 'dsp-Use-limit', d: `M0 ${y}H${WIDTH}` }));
    }
    shown.columns.forEach((column, at) =>
      parts.push(
        make('path', {
          class: at === 0 ? 'dsp-Use-line' : 'dsp-Use-line dsp-mod-second',
          d: this._points(column).map(line).join('')
        })
      )
    );
    this.node.replaceChildren(...parts, this._cursor);
  }

  /** The points of a column, in pieces where it has gaps. */
  private _points(column: Column): IPoint[][] {
    const pieces: IPoint[][] = [[]];
    let before = -Infinity;
    column.forEach((value, at) => {
      const moment = this._shown?.at[at] ?? 0;
      if (value === null || moment - before > GAP_SECONDS) {
        pieces.push([]);
      }
      if (value !== null) {
        pieces.at(-1)?.push({ x: this._x(moment), y: this._y(value) });
        before = moment;
      }
    });
    return pieces.filter(piece => piece.length > 0);
  }

  private _nearest(event: PointerEvent): number | null {
    const box = this.node.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * WIDTH;
    const away = (this._shown?.at ?? []).map(moment => Math.abs(this._x(moment) - x));
    const least = Math.min(...away);
    return least < WIDTH / 50 ? away.indexOf(least) : null;
  }

  private _place(at: number | null): void {
    const moment = at === null ? undefined : this._shown?.at[at];
    this._cursor.setAttribute('d', moment === undefined ? '' : `M${this._x(moment)} 0V${HEIGHT}`);
  }

  private _x(moment: number): number {
    const at = this._shown?.at ?? [];
    const ago = (at.at(-1) ?? 0) - moment;
    return Math.round(10 * WIDTH * (1 - ago / shownSeconds(at))) / 10;
  }

  private _y(value: number): number {
    const top = this._shown?.top ?? 1;
    return Math.round(10 * HEIGHT * (1 - Math.min(1, value / top))) / 10;
  }

  private _shown: IShown | null = null;
  private _cursor = make('path', { class: 'dsp-Use-cursor' });
}

interface IPoint {
  x: number;
  y: number;
}

/** A line through points; a single one is drawn as a dot. */
function line(points: IPoint[]): string {
  const more = points.length === 1 ? 'h0' : '';
  return `M${points.map(({ x, y }) => `${x} ${y}`).join('L')}${more}`;
}

function area(pieces: IPoint[][]): string {
  return pieces
    .map(piece => {
      const [first, last] = [piece[0] as IPoint, piece.at(-1) as IPoint];
      return `${line(piece)}L${last.x} ${HEIGHT}L${first.x} ${HEIGHT}Z`;
    })
    .join('');
}

function make<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Record<string, string>
): SVGElementTagNameMap[K] {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) {
    node.setAttribute(name, value);
  }
  return node;
}
