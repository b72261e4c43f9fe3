import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { IJob } from '../src/jobs/job';
import { JobWatch, ranSeconds } from '../src/jobs/watch';

function job(id: string, state: string, more: Partial<IJob> = {}): IJob {
  const is_over = !['PENDING', 'RUNNING'].includes(state);
  return { id, state, is_over, is_session: false, started: 100, ends: 190, ...more } as IJob;
}

test('a job that ends is told once, and none that was over before', () => {
  const watch = new JobWatch();
  assert.deepEqual(watch.take([job('1', 'RUNNING'), job('2', 'FAILED')]), []);
  assert.ok(watch.hasOpen);
  const told = watch.take([job('1', 'COMPLETED'), job('2', 'FAILED')]);
  assert.deepEqual(
    told.map(one => one.id),
    ['1']
  );
  assert.deepEqual(watch.take([job('1', 'COMPLETED')]), []);
  assert.ok(!watch.hasOpen);
});

test('nobody waits for the end of a session', () => {
  const watch = new JobWatch();
  watch.take([job('1', 'RUNNING', { is_session: true })]);
  assert.ok(!watch.hasOpen);
});

test('how long a job ran is not made up', () => {
  assert.equal(ranSeconds(job('1', 'COMPLETED')), 90);
  assert.equal(ranSeconds(job('1', 'CANCELLED', { started: null })), 0);
});
