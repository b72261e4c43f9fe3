// Jobs that ended since the last look.

import { isWaiting, type IJob } from './job';

/** Is told what is known of the jobs. */
export class JobWatch {
  /** Whether a job is open that somebody may wait for. */
  get hasOpen(): boolean {
    return this._open.size > 0;
  }

  /** Take what is known now; return the jobs that were open before and are over. */
  take(jobs: readonly IJob[]): IJob[] {
    const ended = jobs.filter(job => job.is_over && this._open.has(job.id));
    const open = jobs.filter(job => !job.is_over && !job.is_session);
    this._open = new Set(open.map(job => job.id));
    return ended;
  }

  private _open = new Set<string>();
}

/** For how many seconds a job ran; 0 where that is not known. */
export function ranSeconds(job: IJob): number {
  return job.started === null || job.ends === null || isWaiting(job) ? 0 : job.ends - job.started;
}
