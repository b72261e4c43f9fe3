// Amounts of data, in words.

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
