import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { IJob } from '../../src/jobs/job';
import { JobWatch, ranSeconds } from '../../src/jobs/watch';

function job(id: string, state: string, more: Partial<IJob> = {}): IJob {
  const is_over = !['PENDING', 'RUNNING'].includes(state);
  return { id, state, is_over, is_session: false, started: 100, ends: 190, ...more } as IJob;
}

test('a job that ends is told once, and none that was over before', () => {
  const watch = new JobWatch();
  assert.deepEqual(watch.take([job('1', 'RUNNING'), job('2', 'FAILED')], 200), []);
  assert.ok(watch.hasOpen);
  const told = watch.take([job('1', 'COMPLETED'), job('2', 'FAILED')], 260);
  assert.deepEqual(
    told.map(one => one.id),
    ['1']
  );
  assert.deepEqual(watch.take([job('1', 'COMPLETED')], 320), []);
  assert.ok(!watch.hasOpen);
});

test('a job that came and went between two looks is told, one of before the first is not', () => {
  const watch = new JobWatch();
  assert.deepEqual(watch.take([], 200), []);
  const told = [job('1', 'FAILED', { ends: 190 }), job('2', 'FAILED', { ends: 230 })];
  assert.deepEqual(
    watch.take(told, 260).map(one => one.id),
    ['2']
  );
  assert.deepEqual(watch.take(told, 320), []);
  // Nor again, where one was not told of for a while.
  watch.take([], 380);
  assert.deepEqual(watch.take(told, 440), []);
});

test('nobody waits for the end of a session, nor is it told', () => {
  const watch = new JobWatch();
  watch.take([job('1', 'RUNNING', { is_session: true })], 200);
  assert.ok(!watch.hasOpen);
  assert.deepEqual(watch.take([job('1', 'TIMEOUT', { is_session: true, ends: 250 })], 260), []);
});

test('how long a job ran is not made up', () => {
  assert.equal(ranSeconds(job('1', 'COMPLETED')), 90);
  assert.equal(ranSeconds(job('1', 'CANCELLED', { started: null })), 0);
});
