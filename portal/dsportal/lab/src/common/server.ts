// What the session's server knows of its time: portal/dsportal/session/page/clock.py.

import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';

import type { IBoard } from '../launcher/tensorboards';
import type { ITemplate } from '../launcher/template_list';
import type { ISessionUse } from '../usage/data';
import { SESSION_HAS_ENDED } from './words';

/** Moments are seconds since 1970. */
export interface IReading {
  /** `null`: the session has no limit, or it is not known. */
  deadline: number | null;
  now: number;
  longest_minutes: number;
  until: number | null;
  /** Why the session cannot be extended. */
  reason: string;
  /** How often it can be extended. */
  times_left: number;
  warning_minutes: number[];
  job_id: string;
  node: string;
  gpus: number;
}

/** Ask for the time, for so many milliseconds at most. */
export function read(settings: ServerConnection.ISettings, patience?: number): Promise<IReading> {
  const init = patience === undefined ? {} : { signal: AbortSignal.timeout(patience) };
  return request(settings, 'portal/clock', init);
}

/** Ask for more time; fails with the server's words. */
export function extend(settings: ServerConnection.ISettings, minutes: number): Promise<IReading> {
  const body = JSON.stringify({ minutes });
  return request(settings, 'portal/clock/extend', { method: 'POST', body });
}

/** What the session's server knows of its use: portal/dsportal/session/usage/idle.py. */
export interface IIdle {
  now: number;
  used_at: number;
  limit_seconds: number | null;
  /** `null`: the session may stay unused. */
  ends_at: number | null;
  warning_seconds: number;
}

/** Ask when the session was last used. */
export function readIdle(settings: ServerConnection.ISettings): Promise<IIdle> {
  return request(settings, 'portal/idle', {});
}

/** Say that somebody is there. */
export function sayThere(settings: ServerConnection.ISettings): Promise<IIdle> {
  return request(settings, 'portal/idle', { method: 'POST' });
}

/**
 * After `session-stopping`: say that documents are being saved, or that they are saved. Return
 * whether the server heard it.
 */
export async function tell(
  settings: ServerConnection.ISettings,
  what: 'saving' | 'saved'
): Promise<boolean> {
  try {
    await ask(settings, `portal/shutdown/${what}`, { method: 'POST' });
    return true;
  } catch {
    return false;
  }
}

/** Ask which templates there are, and in which folder of the home. */
export function readTemplates(
  settings: ServerConnection.ISettings
): Promise<{ link: string; templates: ITemplate[] }> {
  return request(settings, 'portal/templates', {});
}

/** Where a copy is: portal/dsportal/session/page/template_copies.py. */
export interface ITemplateCopy {
  path: string;
  /** The files that were copied with a notebook, and that it uses. */
  companions: string[];
}

/** Copy a template; return where the copy is. Fails with the server's words. */
export function copyTemplate(
  settings: ServerConnection.ISettings,
  path: string,
  folder: string
): Promise<ITemplateCopy> {
  const body = JSON.stringify({ path, folder });
  return request(settings, 'portal/templates/copy', { method: 'POST', body });
}

/** Ask what the session used, after sample number `since`. */
export function readUse(settings: ServerConnection.ISettings, since: number): Promise<ISessionUse> {
  return request(settings, `portal/use?since=${since}`, {});
}

/** Somebody else who came into this session: portal/dsportal/session/page/visits.py. */
export interface IVisit {
  name: string;
  /** Seconds since 1970. */
  at: number;
}

/** Ask who else was here. */
export function readVisits(settings: ServerConnection.ISettings): Promise<{ visits: IVisit[] }> {
  return request(settings, 'portal/visits', {});
}

/** Ask which TensorBoards run. */
export function listBoards(settings: ServerConnection.ISettings): Promise<{ boards: IBoard[] }> {
  return request(settings, 'portal/tensorboard', {});
}

/** Stop a TensorBoard; return those that are left. */
export function stopBoard(
  settings: ServerConnection.ISettings,
  id: string
): Promise<{ boards: IBoard[] }> {
  return request(settings, `portal/tensorboard/${id}`, { method: 'DELETE' });
}

/** Ask whether a folder has something for TensorBoard to show; `null`: it is too large to tell. */
export function lookForEvents(
  settings: ServerConnection.ISettings,
  folder: string
): Promise<{ has_events: boolean | null }> {
  const query = `folder=${encodeURIComponent(folder)}`;
  return request(settings, `portal/tensorboard/look?${query}`, {});
}

/** A web tool: portal/dsportal/session/tools/toolbox.py. */
export interface ITool {
  name: string;
  title: string;
  /** An SVG, as an address. */
  picture: string;
  state: 'stopped' | 'starting' | 'running';
  /** Whether every user of the node can reach its port. */
  is_open_to_node: boolean;
}

/** Ask which web tools there are. */
export function readTools(settings: ServerConnection.ISettings): Promise<{ tools: ITool[] }> {
  return request(settings, 'portal/tools', {});
}

/** Stop a web tool; fails with the server's words. */
export async function stopTool(settings: ServerConnection.ISettings, name: string): Promise<void> {
  await ask(settings, `portal/tools/${encodeURIComponent(name)}`, { method: 'DELETE' });
}

/** What the hub answers in the place of a session that has ended, and the proxy until it knows. */
const NOT_RUNNING = [424, 503];

/** Whether nobody answered, or somebody in the session's place. */
export function isAway(error: unknown): boolean {
  return (
    error instanceof ServerConnection.NetworkError ||
    (error instanceof ServerConnection.ResponseError && NOT_RUNNING.includes(error.response.status))
  );
}

/** Whether the session answers, but not this browser any more; a file's refusal has other words. */
export function isLoggedOut(error: unknown): boolean {
  return (
    error instanceof ServerConnection.ResponseError &&
    error.response.status === 403 &&
    error.message === 'Forbidden'
  );
}

/** Say in words what went wrong. */
export function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

let isOver = false;

/** Ask nothing any more: the session has ended. */
export function fallSilent(): void {
  isOver = true;
}

/** Ask the session's server; fails with its words. */
export async function ask(
  settings: ServerConnection.ISettings,
  path: string,
  init: RequestInit
): Promise<Response> {
  if (isOver) {
    throw new ServerConnection.NetworkError(new TypeError(SESSION_HAS_ENDED));
  }
  const url = URLExt.join(settings.baseUrl, path);
  const response = await ServerConnection.makeRequest(url, init, settings);
  if (!response.ok) {
    throw await ServerConnection.ResponseError.create(response);
  }
  return response;
}

/** The same, for an object. */
export async function request<T>(
  settings: ServerConnection.ISettings,
  path: string,
  init: RequestInit
): Promise<T> {
  return (await (await ask(settings, path, init)).json()) as T;
}
