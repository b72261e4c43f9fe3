// Jobs that ended since the last look.

import { isWaiting, type IJob } from './job';

/** Is told what is known of the jobs. */
export class JobWatch {
  /** Whether a job is open that somebody may wait for. */
  get hasOpen(): boolean {
    return this._open.size > 0;
  }

  /** Take what is known now; return the jobs that have ended since the last look. */
  take(jobs: readonly IJob[], now: number): IJob[] {
    this._since ??= now;
    const over = jobs.filter(job => job.is_over);
    const ended = over.filter(job => this._open.has(job.id) || this._cameAndWent(job));
    const open = jobs.filter(job => !job.is_over && !job.is_session);
    this._open = new Set(open.map(job => job.id));
    over.forEach(job => this._over.add(job.id));
    return ended;
  }

  /** Slurm tells of a job that no look has found open, and that ended after the first. */
  private _cameAndWent(job: IJob): boolean {
    return !this._over.has(job.id) && !job.is_session && (job.ends ?? 0) > this._since!;
  }

  private _since: number | null = null;
  private _open = new Set<string>();
  private _over = new Set<string>();
}

/** For how many seconds a job ran; 0 where that is not known. */
export function ranSeconds(job: IJob): number {
  return job.started === null || job.ends === null || isWaiting(job) ? 0 : job.ends - job.started;
}
