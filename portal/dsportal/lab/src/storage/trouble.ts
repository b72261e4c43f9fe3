// What is wrong with the storage.

import type { IStorage } from '../common/bytes';

/** A mount that is not as it should be: portal/dsportal/session/files/mounts.py, notices.py. */
export interface ITrouble {
  /** The link in the home that leads to it; `~` for the home, empty for none. */
  name: string;
  point: string;
  state: 'hangs' | 'fails' | 'missing';
  /** Seconds since 1970. */
  since: number;
  reason: string;
}

/** What the landing screen says of the storage. */
export interface INotices {
  mounts: ITrouble[];
  storages: IStorage[];
}
