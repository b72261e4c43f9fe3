// Jobs of Slurm in words. Moments are seconds since 1970; no clock is read here.

import { hour, span, type ITexts } from '../common/time';

/** What the session's server knows of a job: portal/dsportal/session/jobs/records.py. `null`: not known. */
export interface IJob {
  id: string;
  state: string;
  name: string | null;
  reason: string | null;
  partition: string | null;
  gpus: number | null;
  nodes: string[];
  is_session: boolean;
  submitted: number | null;
  started: number | null;
  expected_start: number | null;
  /** When its time is up, or when it ended. */
  ends: number | null;
  exit_code: number | null;
  signal: number | null;
  is_over: boolean;
}

/** What partitions of the same nodes have of one type of GPU. */
export interface IFree {
  partitions: string[];
  type: string | null;
  free: number;
  total: number;
}

/** What a state looks like. */
export type Look = 'good' | 'waiting' | 'bad' | 'quiet';

const DAY_SECONDS = 86_400;

/** Whether a job waits for its start. */
export function isWaiting(job: IJob): boolean {
  return job.state === 'PENDING' || job.state.startsWith('REQUEUE');
}

/** Whether a job may have written something. */
export function hasStarted(job: IJob): boolean {
  return job.started !== null && !isWaiting(job);
}

/** What to call a job. */
export function nameOf(job: IJob, texts: ITexts): string {
  return job.name || texts.__('Job %1', job.id);
}

/** Say in words how a job is, or how it ended. */
export function stateOf(job: IJob, texts: ITexts): string {
  const words: Record<string, string> = {
    BOOT_FAIL: texts.__('its node did not start'),
    CANCELLED: texts.__('cancelled'),
    COMPLETED: texts.__('finished'),
    COMPLETING: texts.__('ending'),
    CONFIGURING: texts.__('starting'),
    DEADLINE: texts.__('too late for its deadline'),
    FAILED: failure(job, texts),
    LOST: texts.__('ended; outcome unknown'),
    NODE_FAIL: texts.__('its node failed'),
    OUT_OF_MEMORY: texts.__('out of memory'),
    PENDING: texts.__('waiting'),
    PREEMPTED: texts.__('gave way to another job'),
    RUNNING: texts.__('running'),
    STAGE_OUT: texts.__('ending'),
    STOPPED: texts.__('stopped'),
    SUSPENDED: texts.__('suspended'),
    TIMEOUT: texts.__('out of time')
  };
  return words[job.state] ?? (isWaiting(job) ? texts.__('waiting') : job.state.toLowerCase());
}

function failure(job: IJob, texts: ITexts): string {
  if (job.signal !== null) {
    return texts.__('failed, ended by signal %1', job.signal);
  }
  return job.exit_code === null
    ? texts.__('failed')
    : texts.__('failed, exit code %1', job.exit_code);
}

/** Say what its state looks like. */
export function lookOf(job: IJob): Look {
  if (isWaiting(job) || ['CONFIGURING', 'SUSPENDED', 'STOPPED'].includes(job.state)) {
    return 'waiting';
  }
  if (!job.is_over) {
    return 'good';
  }
  return ['COMPLETED', 'CANCELLED', 'LOST'].includes(job.state) ? 'quiet' : 'bad';
}

/** Say where a job is and what it holds: `Job 7 · 2 GPUs · node001`. */
export function placeOf(job: IJob, texts: ITexts): string {
  const gpus = job.gpus === null ? '' : texts._n('%1 GPU', '%1 GPUs', job.gpus);
  return [
    job.name ? texts.__('Job %1', job.id) : '',
    job.gpus === 0 ? texts.__('no GPU') : gpus,
    nodesOf(job.nodes, texts) || (job.partition ?? '')
  ]
    .filter(Boolean)
    .join(' · ');
}

function nodesOf(nodes: string[], texts: ITexts): string {
  return nodes.length > 2
    ? texts.__('%1 and %2 more nodes', nodes[0], nodes.length - 1)
    : nodes.join(', ');
}

/** Say why a job waits: the service's sentence, or in its place Slurm's word. */
export function reasonOf(job: IJob, texts: ITexts): string {
  const words: Record<string, string> = {
    BeginTime: texts.__('scheduled to start later'),
    Dependency: texts.__('waiting for another job to end'),
    JobArrayTaskLimit: texts.__('its array has reached its limit of running tasks'),
    JobHeldUser: texts.__('held by you'),
    Priority: texts.__('jobs with a higher priority come first'),
    Resources: texts.__('the resources it needs are not free')
  };
  const reason = (isWaiting(job) && job.reason) || '';
  return words[reason] ?? (/^\w+$/.test(reason) ? texts.__('Slurm says: %1', reason) : reason);
}

/** Say what its time is: how long it runs, what is left, when it starts, when it ended. */
export function timeOf(job: IJob, now: number, texts: ITexts): string {
  if (job.is_over) {
    const ran = job.started !== null && job.ends !== null ? job.ends - job.started : null;
    return together([
      job.ends === null ? '' : texts.__('ended %1', moment(job.ends, now)),
      ran === null ? '' : texts.__('ran for %1', span(ran, texts))
    ]);
  }
  if (isWaiting(job)) {
    const waited = job.submitted === null ? null : span(now - job.submitted, texts);
    const start = job.expected_start;
    return together([
      waited === null ? '' : texts.__('waiting for %1', waited),
      start === null || start < now ? '' : texts.__('expected to start %1', moment(start, now))
    ]);
  }
  return together([
    job.ends === null || job.ends < now ? '' : texts.__('%1 left', span(job.ends - now, texts)),
    job.started === null ? '' : texts.__('running for %1', span(now - job.started, texts))
  ]);
}

/** Join parts that a narrow panel does not break. */
function together(parts: string[]): string {
  return parts
    .filter(Boolean)
    .map(part => part.replaceAll(' ', '\u00a0'))
    .join(', ');
}

/** Write a moment for people, with its day where that is not today's or near. */
export function moment(at: number, now: number): string {
  if (Math.abs(at - now) < DAY_SECONDS / 2) {
    return hour(at);
  }
  const day = new Date(1000 * at).toLocaleDateString([], { month: 'short', day: 'numeric' });
  return `${day}, ${hour(at)}`;
}

/** Jobs that are not over: running ones first, then by submission. */
export function open(jobs: readonly IJob[]): IJob[] {
  const found = jobs.filter(job => !job.is_over);
  const rank = (job: IJob): number => (isWaiting(job) ? 1 : 0);
  return found.sort((a, b) => rank(a) - rank(b) || (b.submitted ?? 0) - (a.submitted ?? 0));
}

/** Jobs that ended, the last one first. */
export function ended(jobs: readonly IJob[]): IJob[] {
  return jobs.filter(job => job.is_over).sort((a, b) => (b.ends ?? 0) - (a.ends ?? 0));
}
