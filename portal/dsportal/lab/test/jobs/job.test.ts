import assert from 'node:assert/strict';
import { test } from 'node:test';

import { ServerConnection } from '@jupyterlab/services';

import { byJob, endedJobs, isWaiting, lookOf, open, type IJob } from '../../src/jobs/job';
import {
  logFile,
  logState,
  moment,
  nameOf,
  notRead,
  placeOf,
  reasonOf,
  staleness,
  stateOf,
  timeOf
} from '../../src/jobs/words';
import type { IPiece } from '../../src/jobs/server';

const texts = {
  __: (text: string, ...values: unknown[]) => text.replace(/%(\d)/g, (_, n) => `${values[n - 1]}`),
  _n: (one: string, many: string, count: number) =>
    (count === 1 ? one : many).replace('%1', `${count}`)
};
const NOW = 1_000_000;

function job(about: Partial<IJob>): IJob {
  const none = { name: null, reason: null, partition: null, gpus: null, submitted: null };
  const moments = { started: null, expected_start: null, ends: null };
  const end = { exit_code: null, signal: null, is_over: false, is_session: false };
  return { id: '7', state: 'RUNNING', nodes: [], ...none, ...moments, ...end, ...about };
}

/** Without the spaces that do not break. */
function said(about: Partial<IJob>): string {
  return timeOf(job(about), NOW, texts).replaceAll('\u00a0', ' ');
}

for (const [about, words, look] of [
  [{ state: 'RUNNING' }, 'running', 'good'],
  [{ state: 'PENDING' }, 'waiting', 'waiting'],
  [{ state: 'REQUEUE_HOLD' }, 'waiting', 'waiting'],
  [{ state: 'COMPLETED', is_over: true }, 'finished', 'quiet'],
  [{ state: 'FAILED', is_over: true, exit_code: 3 }, 'failed, exit code 3', 'bad'],
  [{ state: 'FAILED', is_over: true, signal: 9 }, 'failed, ended by signal 9', 'bad'],
  [{ state: 'FAILED', is_over: true }, 'failed', 'bad'],
  [{ state: 'TIMEOUT', is_over: true }, 'out of time', 'bad'],
  [{ state: 'LOST', is_over: true }, 'ended; outcome unknown', 'quiet'],
  [{ state: 'SOMETHING_NEW' }, 'something_new', 'good']
] as const) {
  test(`${about.state} is ${words}`, () => {
    assert.equal(stateOf(job(about), texts), words);
    assert.equal(lookOf(job(about)), look);
  });
}

test('a job says what it holds and where', () => {
  const about = { name: 'train', gpus: 2, nodes: ['node001'], partition: 'sxm2' };
  assert.equal(placeOf(job(about), texts), 'Job 7 · 2 GPUs · node001');
  assert.equal(placeOf(job({ ...about, nodes: [] }), texts), 'Job 7 · 2 GPUs · sxm2');
  assert.equal(
    placeOf(job({ ...about, nodes: ['a', 'b', 'c'] }), texts).slice(-18),
    'a and 2 more nodes'
  );
  assert.equal(placeOf(job({ gpus: 0, nodes: ['a'] }), texts), 'no GPU · a');
  assert.equal(placeOf(job({ nodes: ['a'] }), texts), 'a', 'what is not known is not said');
});

test('a session is called one, whatever its job is called', () => {
  const session = { name: 'portal-ada', is_session: true, nodes: ['a'] };
  assert.equal(nameOf(job(session), texts), 'Session');
  assert.equal(placeOf(job({ ...session, name: null }), texts), 'Job 7 · a');
  assert.equal(nameOf(job({ name: 'train' }), texts), 'train');
  assert.equal(nameOf(job({}), texts), 'Job 7');
});

test('a running job says what is left first', () => {
  assert.equal(
    said({ started: NOW - 600, ends: NOW + 7200 }),
    '2 h 00 min left, running for 10 min'
  );
  assert.equal(said({ started: NOW - 600 }), 'running for 10 min');
});

test('what is known since another day is told with the day', () => {
  const told = { now: NOW, source: null, every_seconds: 15, session_job: '', jobs: [], free: null };
  const as_of = NOW - 3 * 86_400;
  const said = staleness({ ...told, as_of }, texts);
  assert.ok(said.endsWith(` Last updated at ${moment(as_of, NOW)}.`), said);
});

test('what is said of a log stays the same while it grows, and its file has the size', () => {
  const piece = { path: '/home/ann/slurm-7.out', size: 512, is_over: false } as IPiece;
  for (const size of [512, 2048]) {
    assert.equal(logState({ ...piece, size }, false, texts), 'still being written');
  }
  assert.equal(logState({ ...piece, is_over: true }, true, texts), 'the job has ended');
  assert.equal(logState({ ...piece, is_over: null }, false, texts), '');
  assert.equal(
    logFile(piece, true, texts),
    '/home/ann/slurm-7.out · 512 B · only the end is shown'
  );
});

test('a waiting job says since when, and when it may start', () => {
  const waiting = { state: 'PENDING', submitted: NOW - 120 };
  assert.equal(said(waiting), 'waiting for 2 min');
  assert.match(
    said({ ...waiting, expected_start: NOW + 60 }),
    /^waiting for 2 min, expected to start /
  );
  assert.equal(said({ ...waiting, expected_start: NOW - 60 }), 'waiting for 2 min');
});

test('a job that ended says when, and how long it ran', () => {
  const over = { state: 'COMPLETED', is_over: true, ends: NOW - 60 };
  assert.match(said({ ...over, started: NOW - 360 }), /^ended .+, ran for 5 min$/);
  assert.match(said(over), /^ended [^,]+$/);
});

test('another day is named', () => {
  assert.equal(moment(NOW + 60, NOW).includes(','), false);
  assert.equal(moment(NOW + 2 * 86_400, NOW).includes(','), true);
});

for (const [reason, words] of [
  ['Resources', 'the resources it needs are not free'],
  ['QOSGrpCpuLimit', 'Slurm says: QOSGrpCpuLimit'],
  ['no node has enough free GPUs', 'no node has enough free GPUs'],
  [null, '']
] as const) {
  test(`the reason ${reason} is told`, () => {
    assert.equal(reasonOf(job({ state: 'PENDING', reason }), texts), words);
  });
}

test('a job that runs gives no reason', () => {
  assert.equal(reasonOf(job({ reason: 'Resources' }), texts), '');
});

test('what belongs to a job is kept as long as the job is told of', () => {
  const make = () => ({});
  const first = byJob([job({ id: '1' }), job({ id: '2' })], new Map<string, object>(), make);
  const next = byJob([job({ id: '2' }), job({ id: '3' })], first, make);
  assert.deepEqual([...next.keys()], ['2', '3']);
  assert.equal(next.get('2'), first.get('2'));
});

test('running jobs come before waiting ones, and the last to end first', () => {
  const all = [
    job({ id: '1', state: 'PENDING', submitted: 3 }),
    job({ id: '2', submitted: 1 }),
    job({ id: '3', submitted: 2 }),
    job({ id: '4', state: 'FAILED', is_over: true, ends: 5 }),
    job({ id: '5', state: 'COMPLETED', is_over: true, ends: 6 })
  ];
  assert.deepEqual(
    open(all).map(one => one.id),
    ['3', '2', '1']
  );
  assert.deepEqual(
    endedJobs(all).map(one => one.id),
    ['5', '4']
  );
  assert.ok(isWaiting(all[0] as IJob));
});

test('whoever is logged out is not told that the session may have ended', () => {
  const refused = (status: number, words: string) =>
    new ServerConnection.ResponseError(new Response(null, { status }), words);
  assert.match(notRead(refused(403, 'Forbidden'), texts), /^You are logged out .* still running/);
  const cut = new ServerConnection.NetworkError(new TypeError());
  for (const away of [refused(424, ''), refused(503, ''), cut]) {
    assert.match(notRead(away, texts), /^Your session is not responding/);
  }
  assert.equal(notRead(refused(404, 'There is no log.'), texts), 'There is no log.');
});
