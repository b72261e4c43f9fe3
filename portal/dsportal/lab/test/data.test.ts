import assert from 'node:assert/strict';
import { test } from 'node:test';

import { bytes } from '../src/common/bytes';
import type { ITexts } from '../src/common/time';
import {
  columnSummary,
  Hour,
  roundUp,
  shownSeconds,
  type Column,
  type ISessionUse
} from '../src/usage/data';
import { cores, glance, hint, missing, number, shortHint, usedOfHeld } from '../src/usage/words';

const texts: ITexts = {
  __: (text, ...values) =>
    values.reduce<string>((done, value, at) => done.replace(`%${at + 1}`, String(value)), text),
  _n: (one, many, count) => (count === 1 ? one : many).replace('%1', String(count))
};

/** What the server tells, with some percents of each GPU. */
function told(first: number, at: number[], ...gpus: Column[]): ISessionUse {
  const column = at.map(() => 1);
  return {
    first,
    every_seconds: 10,
    held: { cores: 4, memory_bytes: 2 ** 33 },
    gpus: {
      state: gpus.length ? 'known' : 'none',
      each: gpus.map(() => ({ name: 'V100', memory_total_bytes: 2 ** 35, unused_seconds: 0 }))
    },
    samples: {
      at,
      cores: column,
      memory_bytes: column,
      read_rate: column,
      write_rate: column,
      gpus: gpus.map(percent => ({ percent, memory_bytes: column, celsius: column, watts: column }))
    }
  };
}

test('what comes next is added, also nothing', () => {
  const known = new Hour();
  known.take(told(1, [10, 20], [50, 60]));
  assert.equal(known.last, 2);
  known.take(told(3, [30], [70]));
  known.take(told(4, [], []));
  assert.equal(known.last, 3);
  assert.deepEqual(known.use?.samples.at, [10, 20, 30]);
  assert.deepEqual(known.use?.samples.gpus[0]?.percent, [50, 60, 70]);
});

test('two answers to one question are taken once', () => {
  const known = new Hour();
  known.take(told(1, [10, 20, 30, 40]), 0);
  known.take(told(5, [50]), 4);
  known.take(told(5, [50]), 4);
  assert.deepEqual(known.use?.samples.at, [10, 20, 30, 40, 50]);
});

test('an hour is kept', () => {
  const known = new Hour();
  known.take(told(1, [0, 10], [1, 2]));
  known.take(told(3, [3605], [3]));
  assert.deepEqual(known.use?.samples.at, [10, 3605]);
  assert.deepEqual(known.use?.samples.gpus[0]?.percent, [2, 3]);
});

test('another session or a hole takes the place of what was known', () => {
  const known = new Hour();
  known.take(told(1, [10, 20]));
  known.take(told(1, [500]));
  assert.deepEqual(known.use?.samples.at, [500]);
  known.take(told(7, [900]));
  assert.deepEqual([known.use?.samples.at, known.last], [[900], 7]);
});

test('when a driver begins to answer, all is asked for again', () => {
  const known = new Hour();
  known.take(told(1, [10]));
  known.take(told(2, [20], [50]));
  assert.equal(known.last, 0);
  known.take(told(1, [10, 20], [null, 50]));
  assert.deepEqual(known.use?.samples.gpus[0]?.percent, [null, 50]);
});

test('a chart shows ten minutes to an hour, as much as is known', () => {
  const spans = [[], [50], [0, 300], [0, 900], [0, 3600, 3700]].map(shownSeconds);
  assert.deepEqual(spans, [600, 600, 600, 900, 3600]);
});

test('what is not known counts neither as nothing nor as the highest', () => {
  assert.deepEqual(columnSummary([null, 2, 4, null]), { now: null, average: 3, highest: 4 });
  assert.deepEqual(columnSummary([null]), { now: null, average: null, highest: null });
  assert.deepEqual(columnSummary([]), { now: null, average: null, highest: null });
});

test('a scale ends at a round number', () => {
  const cases: [number, number, number][] = [
    [0, 10, 1],
    [1, 10, 1],
    [1.2, 10, 2],
    [4, 10, 5],
    [7, 10, 10],
    [40, 10, 50],
    [3 * 2 ** 20, 1024, 5 * 2 ** 20],
    [300 * 2 ** 20, 1024, 500 * 2 ** 20],
    [2 ** 30, 1024, 2 ** 30]
  ];
  for (const [value, base, end] of cases) {
    assert.equal(roundUp(value, base), end);
  }
});

test('figures are written for people', () => {
  const numbers = [0, 0.004, 0.043, 0.999, 1.26, 9.94, 9.97, 34.4].map(number);
  assert.deepEqual(numbers, ['0', '0', '0.04', '1', '1.3', '9.9', '10', '34']);
  assert.equal(usedOfHeld(2 ** 30, 2 ** 35, bytes, texts), '1.0 GiB of 32 GiB');
  assert.equal(usedOfHeld(2 ** 30, null, bytes, texts), '1.0 GiB');
  assert.equal(usedOfHeld(null, 2 ** 35, bytes, texts), '–');
  assert.equal(cores(0.5, 1, texts), '0.5 of 1 core');
  assert.equal(cores(1, 8, texts), '1 of 8 cores');
});

test('a GPU that is not used is pointed out after a quarter of an hour', () => {
  const gpu = (unused_seconds: number) => ({
    name: null,
    memory_total_bytes: null,
    unused_seconds
  });
  assert.equal(hint(1, gpu(899), texts), null);
  assert.equal(hint(1, gpu(1230), texts), 'GPU 1 has not been used for 20 min');
  assert.equal(hint(0, gpu(3600), texts), 'GPU 0 has not been used for an hour or more');
  assert.equal(shortHint([gpu(0), gpu(0)], texts), null);
  assert.equal(shortHint([gpu(0), gpu(960)], texts), 'GPU 1 has not been used for 16 min');
  assert.equal(shortHint([gpu(3600), gpu(960)], texts), '2 GPUs have not been used for 16 min');
});

test('why there are no figures of GPUs is said', () => {
  const use = told(1, [10]);
  assert.equal(missing(use, texts), 'This session holds no GPU.');
  use.gpus.state = 'no_driver';
  assert.match(missing(use, texts) ?? '', /no NVIDIA driver/);
  assert.equal(missing(told(1, [10], [3]), texts), null);
});

test('the status bar tells of the GPUs, or else of the processors', () => {
  assert.equal(glance(told(1, [10], [40]), texts), 'GPU: 40 %');
  assert.equal(glance(told(1, [10], [40], [5]), texts), '2 GPUs: 23 %');
  assert.equal(glance(told(1, [10], [null]), texts), 'CPU: 1 of 4 cores');
  assert.equal(glance(told(1, [10]), texts), 'CPU: 1 of 4 cores');
  const young = told(1, [10]);
  young.samples.cores = [null];
  assert.equal(glance(young, texts), 'My GPUs');
});
