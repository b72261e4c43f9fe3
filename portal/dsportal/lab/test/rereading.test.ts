import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Rereading } from '../src/common/rereading';

test('what is old is read again before it is acted on, and once', async () => {
  let asked = 0;
  let answer = (): void => undefined;
  const known = new Rereading(() => {
    asked += 1;
    return new Promise(resolve => (answer = resolve));
  }, 5);
  assert.ok(known.isAwaited(100));
  assert.ok(known.isAwaited(101));
  answer();
  await new Promise(setImmediate);
  assert.ok(!known.isAwaited(105));
  assert.equal(asked, 1);
  assert.ok(known.isAwaited(106));
  assert.equal(asked, 2);
});

test('where nobody answers, what is known must do', async () => {
  const known = new Rereading(() => Promise.reject(new Error('away')), 5);
  await assert.rejects(known.read(90), /away/);
  assert.ok(!known.isAwaited(95));
  assert.ok(known.isAwaited(100));
  await new Promise(setImmediate);
  assert.ok(!known.isAwaited(101));
});

test('after the clock was set back, what is known is read again', async () => {
  let asked = 0;
  const known = new Rereading(async () => void (asked += 1), 5);
  await known.read(7200);
  assert.ok(known.isAwaited(3600));
  await new Promise(setImmediate);
  assert.ok(!known.isAwaited(3601));
  assert.equal(asked, 2);
});
