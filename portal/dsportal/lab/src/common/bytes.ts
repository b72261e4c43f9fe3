// Amounts of data, in words.

import type { ITexts } from './time';

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

/** What the session's server knows of a storage: portal/dsportal/session/files/quota.py. Sizes are bytes. */
export interface IStorageUse {
  mount: string;
  kind: string;
  size: number;
  used: number;
  free: number;
  is_quota: boolean;
}

/** A storage, with its name. */
export interface IStorage extends IStorageUse {
  /** A link's name in the home, empty for the home itself. */
  name: string;
}

/** Above this, a storage is nearly full. */
export const NEARLY_FULL = 0.9;

/** Write an amount for people: `512 B`, `1.2 TiB`, `34 GiB`. */
export function bytes(amount: number): string {
  let unit = 0;
  while (amount >= 999.5 && unit < UNITS.length - 1) {
    amount /= 1024;
    unit += 1;
  }
  const digits = unit > 0 && amount < 9.95 ? 1 : 0;
  return `${amount.toFixed(digits)} ${UNITS[unit]}`;
}

/** Which part of what the user may have is in use, from 0 to 1. */
export function fullness(storage: IStorage): number {
  // What is set aside for root is neither used nor free.
  const mine = storage.used + storage.free;
  return mine > 0 ? Math.min(1, storage.used / mine) : 1;
}

/** Say how full a storage is: `isilon: 1.2 TiB of 2.0 TiB used`. */
export function storageSummary(storage: IStorage, texts: ITexts): string {
  const name = storage.name || texts.__('Home');
  const [used, size] = [bytes(storage.used), bytes(storage.used + storage.free)];
  return storage.is_quota
    ? texts.__('%1: %2 of your quota of %3 used', name, used, size)
    : texts.__('%1: %2 of %3 used', name, used, size);
}

/** Say where the figures come from. */
export function source(storage: IStorage, texts: ITexts): string {
  const free = texts.__('%1 free on %2 (%3).', bytes(storage.free), storage.mount, storage.kind);
  if (storage.is_quota) {
    return `${free} ${texts.__('The limit is your own quota, as reported by the file server.')}`;
  }
  return storage.kind.startsWith('nfs')
    ? `${free} ${texts.__('The size is as reported by the file server: the folder’s quota, if it has one.')}`
    : `${free} ${texts.__('Everyone who uses this disk shares it.')}`;
}
