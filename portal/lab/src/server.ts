// What the session's server knows of its time: portal/session/clock.py.

import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';

/** Moments are seconds since 1970. */
export interface IReading {
  /** `null`: the session has no limit, or it is not known. */
  deadline: number | null;
  now: number;
  longest_minutes: number;
  until: number | null;
  /** Why the session cannot be extended. */
  reason: string;
  warning_minutes: number[];
  job_id: string;
  node: string;
  gpus: number;
}

/** Ask for the time. */
export function read(settings: ServerConnection.ISettings): Promise<IReading> {
  return request(settings, 'portal/clock', {});
}

/** Ask for more time; fails with the server's words. */
export function extend(settings: ServerConnection.ISettings, minutes: number): Promise<IReading> {
  const body = JSON.stringify({ minutes });
  return request(settings, 'portal/clock/extend', { method: 'POST', body });
}

/**
 * After `session-stopping`: say that documents are being saved, or that they are saved. Return
 * whether the server heard it.
 */
export async function tell(
  settings: ServerConnection.ISettings,
  what: 'saving' | 'saved'
): Promise<boolean> {
  const url = URLExt.join(settings.baseUrl, 'portal/farewell', what);
  try {
    return (await ServerConnection.makeRequest(url, { method: 'POST' }, settings)).ok;
  } catch {
    return false;
  }
}

async function request(
  settings: ServerConnection.ISettings,
  path: string,
  init: RequestInit
): Promise<IReading> {
  const url = URLExt.join(settings.baseUrl, path);
  const response = await ServerConnection.makeRequest(url, init, settings);
  if (!response.ok) {
    throw await ServerConnection.ResponseError.create(response);
  }
  return (await response.json()) as IReading;
}
