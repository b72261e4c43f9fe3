import assert from 'node:assert/strict';
import test from 'node:test';

import { Stopwatch } from '../src/notify/stopwatch';

test('a cell of Run All did not run while others did', () => {
  const [notebook, first, second] = [{}, {}, {}];
  const watch = new Stopwatch();
  watch.begin(first, 1000);
  watch.begin(second, 1000);
  assert.equal(watch.end(notebook, first, 61_000), 60_000);
  assert.equal(watch.end(notebook, second, 62_000), 1_000);
});

test('another notebook does not count', () => {
  const [notebook, other, cell, cellOfOther] = [{}, {}, {}, {}];
  const watch = new Stopwatch();
  watch.begin(cell, 0);
  watch.begin(cellOfOther, 0);
  watch.end(other, cellOfOther, 5_000);
  assert.equal(watch.end(notebook, cell, 9_000), 9_000);
});

test('what was not seen to begin took no time', () => {
  assert.equal(new Stopwatch().end({}, {}, 9_000), 0);
});
