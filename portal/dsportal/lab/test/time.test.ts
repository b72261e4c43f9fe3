import assert from 'node:assert/strict';
import { test } from 'node:test';

import {
  amount,
  extensionChoices,
  idlePause,
  isWarned,
  Marks,
  span,
  Throttle,
  type ITexts
} from '../src/common/time';

const texts: ITexts = {
  __: (text, ...values) =>
    values.reduce<string>((done, value, at) => done.replace(`%${at + 1}`, String(value)), text),
  _n: (one, many, count) => (count === 1 ? one : many).replace('%1', String(count))
};

test('a span is written for people', () => {
  const cases: [number, string][] = [
    [-5, 'under a minute'],
    [0, 'under a minute'],
    [59.9, 'under a minute'],
    [60, '1 min'],
    [3599, '59 min'],
    [3600, '1 h 00 min'],
    [7500, '2 h 05 min'],
    [90000, '25 h 00 min']
  ];
  for (const [seconds, words] of cases) {
    assert.equal(span(seconds, texts), words);
  }
});

test('a round amount has no minutes', () => {
  const written = [30, 60, 90, 240].map(minutes => amount(minutes, texts));
  assert.deepEqual(written, ['30 min', '1 h', '1 h 30 min', '4 h']);
});

test('each mark is passed once', () => {
  const marks = new Marks([120, 1800, 600]);
  assert.equal(marks.passed(10_000, 8_000), null);
  assert.equal(marks.passed(10_000, 8_200), 1800);
  assert.equal(marks.passed(10_000, 8_300), null);
  assert.equal(marks.passed(10_000, 9_400), 600);
  assert.equal(marks.passed(10_000, 9_900), 120);
  assert.equal(marks.passed(10_000, 11_000), null);
});

test('of several marks the last one counts', () => {
  const marks = new Marks([1800, 600, 120]);
  assert.equal(marks.passed(10_000, 9_500), 600);
  assert.equal(marks.passed(10_000, 9_500), null);
});

test('a new deadline has its own marks', () => {
  const marks = new Marks([1800, 600, 120]);
  assert.equal(marks.passed(10_000, 9_900), 120);
  assert.equal(marks.passed(20_000, 9_900), null);
  assert.equal(marks.passed(20_000, 19_500), 600);
  // An earlier one, too: the limit was lowered.
  assert.equal(marks.passed(19_600, 19_500), 120);
});

test('a clock that goes back passes no mark twice', () => {
  const marks = new Marks([600]);
  assert.equal(marks.passed(10_000, 9_500), 600);
  assert.equal(marks.passed(10_000, 9_000), null);
  assert.equal(marks.passed(10_000, 9_500), null);
});

test('to look whether a mark is due does not pass it', () => {
  const marks = new Marks([600]);
  assert.equal(marks.isDue(10_000, 9_000), false);
  assert.equal(marks.isDue(10_000, 9_500), true);
  assert.equal(marks.isDue(10_000, 9_500), true);
  assert.equal(marks.passed(10_000, 9_500), 600);
  assert.equal(marks.isDue(10_000, 9_500), false);
  assert.equal(marks.isDue(10_050, 9_500), true);
});

test('without marks nothing is passed', () => {
  assert.equal(new Marks([]).passed(10_000, 11_000), null);
});

test('the longest extension is the last choice', () => {
  assert.deepEqual(extensionChoices(0), []);
  assert.deepEqual(extensionChoices(20), [20]);
  assert.deepEqual(extensionChoices(60), [30, 60]);
  assert.deepEqual(extensionChoices(90), [30, 60, 90]);
});

test('an unused session is warned of from the given time on, if it ends at all', () => {
  const use = { ends_at: 1000, warning_seconds: 100 };
  assert.equal(isWarned(use, 899), false);
  assert.equal(isWarned(use, 900), true);
  assert.equal(isWarned(use, 1100), true);
  assert.equal(isWarned({ ...use, ends_at: null }, 900), false);
});

test('the use is asked for more often where its warning is near, or the page is young', () => {
  const use = { ends_at: 10_000, warning_seconds: 600 };
  const cases: [number | null, number, number, number][] = [
    [10_000, 0, 3600, 300],
    [10_000, 9280, 3600, 120],
    [10_000, 9390, 3600, 30],
    [10_000, 9700, 3600, 30],
    [null, 0, 5, 30],
    [null, 0, 90, 90],
    [null, 0, 3600, 300]
  ];
  for (const [ends_at, now, age, pause] of cases) {
    assert.equal(idlePause({ ...use, ends_at }, now, age), pause);
  }
  assert.equal(idlePause(null, 0, 3600), 30);
});

test('a throttle lets through once in a while', () => {
  const throttle = new Throttle(60);
  assert.equal(throttle.isDue(0), true);
  throttle.done(0);
  assert.equal(throttle.isDue(59), false);
  assert.equal(throttle.isDue(60), true);
  throttle.done(60);
  throttle.forget();
  assert.equal(throttle.isDue(61), true);
});

test('a throttle lets through when the clock was set back', () => {
  const throttle = new Throttle(60);
  throttle.done(7200);
  assert.equal(throttle.isDue(3600), true);
  throttle.done(3600);
  assert.equal(throttle.isDue(3659), false);
});
