// A table that is read page by page.

import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';

import { addStyle, element, keepFocus } from '../common/elements';
import { wordsOf } from '../common/server';
import { Pages } from './pages';
import type { IRows } from './server';
import { TABLE_STYLE } from './style';
import { columnsShown, range, tableLabels } from './words';

const NUMBERS = /^(u?int|float|double|halffloat|decimal)/;

/** The rows in sight, with buttons to go on and back. */
export class TableView extends Widget {
  constructor(
    private _read: (first: number) => Promise<IRows>,
    private _texts: TranslationBundle
  ) {
    super();
    addStyle(TABLE_STYLE);
    this.addClass('dsp-Table');
    const labels = tableLabels(_texts);
    this._first = this._button(labels.first, () => 0);
    this._previous = this._button(labels.previous, () => this._pages.previous);
    this._next = this._button(labels.next, () => this._pages.next);
    this._again = this._button(labels.again, () => this._wanted);
    this._again.hidden = true;
    this._said.setAttribute('role', 'status');
    const bar = element('div', 'dsp-Table-bar');
    bar.append(this._first, this._previous, this._next, this._said, this._columns, this._again);
    // Scrolled by keyboard, too.
    this._rows.tabIndex = 0;
    this._rows.setAttribute('role', 'region');
    this._rows.setAttribute('aria-label', labels.factory);
    this.node.append(bar, this._rows);
  }

  /** Show the rows from a number on; where that fails, say why. */
  async showRows(first: number): Promise<void> {
    this._wanted = first;
    this._said.textContent = tableLabels(this._texts).reading;
    keepFocus(this.node, () => (this._again.hidden = true), this._rows);
    try {
      const rows = await this._read(first);
      if (first === this._wanted && !this.isDisposed) {
        const instead = this._pages.take(rows);
        if (instead !== null) {
          return await this.showRows(instead);
        }
        keepFocus(this.node, () => this._present(rows), this._rows);
      }
    } catch (error) {
      if (first === this._wanted && !this.isDisposed) {
        this._said.textContent = wordsOf(error);
        this._again.hidden = false;
      }
    }
  }

  /** Read again what is in sight: the file has changed. */
  refresh(): void {
    void this.showRows(this._pages.at);
  }

  private _present(found: IRows): void {
    const end = found.first + found.rows.length;
    this._said.textContent = range(found.first, end, found.all_rows, this._texts);
    this._first.disabled = this._previous.disabled = found.first === 0;
    this._next.disabled = end >= found.all_rows;
    const shown = found.columns.length;
    this._columns.hidden = shown === found.all_columns;
    this._columns.textContent = columnsShown(shown, found.all_columns, this._texts);
    this._rows.replaceChildren(this._table(found));
    this._rows.scrollTop = 0;
  }

  private _table(found: IRows): HTMLTableElement {
    const kinds = found.columns.map(({ type }) => (NUMBERS.test(type) ? 'dsp-mod-number' : ''));
    const head = element('tr');
    head.append(heading(tableLabels(this._texts).row, '', 'dsp-mod-number'));
    head.append(...found.columns.map(({ name, type }, at) => heading(name, type, kinds[at])));
    const body = element('tbody');
    found.rows.forEach((values, at) => {
      const number = element('th', '', (found.first + at + 1).toLocaleString());
      number.scope = 'row';
      const cells = values.map((value, column) => {
        const cell = element('td', kinds[column], value ?? '');
        cell.title = value ?? '';
        return cell;
      });
      const row = element('tr');
      row.append(number, ...cells);
      body.append(row);
    });
    const table = element('table');
    table.createTHead().append(head);
    table.append(body);
    return table;
  }

  private _button(label: string, wanted: () => number): HTMLButtonElement {
    const button = element('button', 'jp-mod-styled', label);
    button.type = 'button';
    button.onclick = () => void this.showRows(wanted());
    return button;
  }

  private _pages = new Pages();
  private _wanted = 0;
  private _first: HTMLButtonElement;
  private _previous: HTMLButtonElement;
  private _next: HTMLButtonElement;
  private _again: HTMLButtonElement;
  private _said = element('p');
  private _columns = element('p');
  private _rows = element('div', 'dsp-Table-rows');
}

function heading(name: string, type: string, kind?: string): HTMLTableCellElement {
  const made = element('th', kind, name);
  made.scope = 'col';
  if (type) {
    made.append(element('small', '', type));
  }
  return made;
}
