// What the session's server knows of jobs and storage: portal/dsportal/session/jobs and files/quota.py.

import type { ServerConnection } from '@jupyterlab/services';

import type { IStorage } from '../common/bytes';
import type { IFree, IJob } from './job';
import { request } from '../common/server';
import type { INotices } from '../storage/trouble';

type Settings = ServerConnection.ISettings;

/** Moments are seconds since 1970. */
export interface IJobs {
  now: number;
  as_of: number | null;
  /** Who told it; `null`: nobody does at the moment, this is what was known before. */
  source: 'service' | 'slurm' | null;
  /** How often Slurm itself is asked, where the service does not answer. */
  every_seconds: number;
  /** The job of this session. */
  session_job: string;
  jobs: IJob[];
  /** `null`: not known. */
  free: IFree[] | null;
}

/** A part of what a job wrote. */
export interface IPiece {
  text: string;
  start: number;
  next: number;
  size: number;
  file: string;
  /** Whether it follows nothing that was read before. */
  is_new: boolean;
  path: string;
  has_err: boolean;
  is_over: boolean | null;
}

/** Ask for the jobs; `anew`: also for those that came and went unseen. */
export function readJobs(settings: Settings, anew: boolean): Promise<IJobs> {
  return request(settings, anew ? 'portal/jobs?anew=1' : 'portal/jobs', {});
}

/** Ask for the jobs alone, where nobody looks. */
export function watchJobs(settings: Settings): Promise<IJobs> {
  return request(settings, 'portal/jobs?free=0', {});
}

/** Cancel a job; fails with Slurm's words. */
export function cancelJob(settings: Settings, job: string): Promise<unknown> {
  return request(settings, 'portal/jobs/cancel', { method: 'POST', body: JSON.stringify({ job }) });
}

/** Read what a job wrote, from an offset of a file on. */
export function readLog(
  settings: Settings,
  job: string,
  stream: 'out' | 'err',
  file: string,
  offset: number
): Promise<IPiece> {
  const query = new URLSearchParams({ job, stream, file, offset: String(offset) });
  return request(settings, `portal/jobs/log?${query}`, {});
}

/** Ask how full the storage is that a path is on. */
export function readStorage(settings: Settings, path: string): Promise<IStorage> {
  return request(settings, `portal/quota?${new URLSearchParams({ path })}`, {});
}

/** Ask what is to be said of the storage. */
export function readNotices(settings: Settings): Promise<INotices> {
  return request(settings, 'portal/notices', {});
}
