// What the session's server knows of the user's environments:
// portal/dsportal/session/own_environments/routes.py.

import type { ServerConnection } from '@jupyterlab/services';

import type { IStorageUse } from '../common/bytes';
import { request } from '../common/server';

/** One that is being made or removed, or was. */
export interface ITask {
  action: 'create' | 'remove';
  name: string;
  state: 'running' | 'done' | 'failed';
  said: string;
}

/** One of the user's. */
export interface IOwnEnvironment {
  name: string;
  path: string;
  /** Which folder it lies in. */
  in: string;
  /** What it is built on. */
  on: string;
  packages: string[];
  /** In bytes; `null`: not known. */
  size: number | null;
  trouble: string;
}

/** What a new one can be built on. */
export interface IBase {
  on: string[];
  title: string;
}

/** Where environments can lie. */
export interface IEnvironmentFolder {
  name: string;
  path: string;
  /** `null`: not known. */
  storage: IStorageUse | null;
  /** Why nothing there can be used now, or empty. */
  trouble: string;
}

/** All that the page shows. */
export interface IEnvironments {
  folders: IEnvironmentFolder[];
  environments: IOwnEnvironment[];
  bases: IBase[];
  /** Whether conda can make them. */
  conda: boolean;
  task: ITask | null;
}

/** What a new one is made with. */
export interface IOrder {
  name: string;
  on: string[];
  packages: string[];
  /** The name of a folder. */
  in: string;
  conda: boolean;
}

const PATH = 'portal/environments';

/** Ask which there are. */
export function readEnvironments(settings: ServerConnection.ISettings): Promise<IEnvironments> {
  return request(settings, PATH, {});
}

/** Begin to make one; fails with the server's words. */
export function createEnvironment(
  settings: ServerConnection.ISettings,
  order: IOrder
): Promise<ITask> {
  return request(settings, PATH, { method: 'POST', body: JSON.stringify(order) });
}

/** Begin to remove one; fails with the server's words. */
export function removeEnvironment(
  settings: ServerConnection.ISettings,
  name: string
): Promise<ITask> {
  const path = `${PATH}/of/${encodeURIComponent(name)}`;
  return request(settings, path, { method: 'DELETE' });
}

/** Stop what is being done. */
export function stopTask(settings: ServerConnection.ISettings): Promise<unknown> {
  return request(settings, `${PATH}/stop`, { method: 'POST' });
}
