// Jobs of Slurm: what is known of them, and in which order they are listed.

/**
 * What the session's server knows of a job: portal/dsportal/session/jobs/records.py. Moments are
 * seconds since 1970. `null`: not known.
 */
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

/** What is known by these jobs' numbers; it is made for new ones, and all else is forgotten. */
export function byJob<T>(
  jobs: readonly IJob[],
  known: ReadonlyMap<string, T>,
  make: () => T
): Map<string, T> {
  return new Map(jobs.map(({ id }) => [id, known.get(id) ?? make()]));
}

/** Whether a job waits for its start. */
export function isWaiting(job: IJob): boolean {
  return job.state === 'PENDING' || job.state.startsWith('REQUEUE');
}

/** Whether a job may have written something. */
export function hasStarted(job: IJob): boolean {
  return job.started !== null && !isWaiting(job);
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

/** Jobs that are not over: running ones first, then by submission. */
export function open(jobs: readonly IJob[]): IJob[] {
  const found = jobs.filter(job => !job.is_over);
  const rank = (job: IJob): number => (isWaiting(job) ? 1 : 0);
  return found.sort((a, b) => rank(a) - rank(b) || (b.submitted ?? 0) - (a.submitted ?? 0));
}

/** Jobs that ended, the last one first. */
export function endedJobs(jobs: readonly IJob[]): IJob[] {
  return jobs.filter(job => job.is_over).sort((a, b) => (b.ends ?? 0) - (a.ends ?? 0));
}
