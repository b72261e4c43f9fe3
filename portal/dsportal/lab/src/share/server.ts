// What the session's server says of sharing: portal/dsportal/session/sharing/routes.py.

import type { ServerConnection } from '@jupyterlab/services';

import { ask, request } from '../common/server';

/** With whom: some people, one group, or everybody who has the link. */
export interface IAudience {
  kind: 'people' | 'group' | 'link';
  names: string[];
}

/** A notebook as it was shared. */
export interface IShare {
  id: string;
  path: string;
  name: string;
  audience: IAudience;
  /** Seconds since 1970. */
  at: number;
  /** Below the hub's `user-redirect`. */
  link: string;
}

/** The user's shares, and the groups to share with. */
export interface IShares {
  groups: string[];
  shares: IShare[];
}

/** Ask what is shared. */
export function readShares(settings: ServerConnection.ISettings): Promise<IShares> {
  return request(settings, 'portal/shares', {});
}

/** Share a notebook; fails with the server's words. */
export function shareNotebook(
  settings: ServerConnection.ISettings,
  path: string,
  audience: IAudience
): Promise<IShare> {
  const body = JSON.stringify({ path, ...audience });
  return request(settings, 'portal/shares', { method: 'POST', body });
}

/** Stop sharing; fails with the server's words. */
export async function stopSharing(settings: ServerConnection.ISettings, id: string): Promise<void> {
  await ask(settings, `portal/shares/${encodeURIComponent(id)}`, { method: 'DELETE' });
}
