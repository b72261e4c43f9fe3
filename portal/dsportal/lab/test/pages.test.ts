import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Pages } from '../src/tables/pages';

/** Read as the server does, of a table with so many rows. */
function read(pages: Pages, first: number, all_rows: number): number | null {
  const rows = Array<string[]>(Math.max(0, Math.min(200, all_rows - first))).fill([]);
  return pages.take({ first, all_rows, rows });
}

test('from the short last page one goes back by a whole page', () => {
  const pages = new Pages();
  for (const first of [0, 200, 400]) {
    assert.equal(pages.next, first);
    assert.equal(read(pages, first, 401), null);
  }
  assert.equal(pages.previous, 200);
  assert.equal(read(pages, 200, 401), null);
  assert.deepEqual([pages.at, pages.previous, pages.next], [200, 0, 400]);
});

test('of a file that was written anew with fewer rows the last ones are read', () => {
  const pages = new Pages();
  read(pages, 0, 900);
  read(pages, 800, 900);
  assert.equal(read(pages, 800, 300), 200);
  assert.equal(read(pages, 800, 200), 0);
  assert.equal(read(pages, 800, 0), 0);
  assert.equal(read(pages, 0, 0), null);
});
