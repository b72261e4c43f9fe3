// Where in a table one is.

import type { IRows } from './server';

/** Knows the rows in sight, and what is before and after them. */
export class Pages {
  /** The number of the first row in sight. */
  get at(): number {
    return this._at;
  }

  get previous(): number {
    return Math.max(0, this._at - this._step);
  }

  get next(): number {
    return this._at + this._step;
  }

  /** Take what was read; return from where on to read instead where the file has become shorter. */
  take(found: Pick<IRows, 'first' | 'all_rows' | 'rows'>): number | null {
    // The last page is short; the one before it is not.
    this._step = Math.max(this._step, found.rows.length);
    if (found.first > 0 && found.first >= found.all_rows) {
      const last = Math.max(0, found.all_rows - 1);
      return last - (last % Math.max(1, this._step));
    }
    this._at = found.first;
    return null;
  }

  private _at = 0;
  private _step = 0;
}
