// What more than one part says.

import { bytes, type IStorage } from './bytes';
import type { ITexts } from './time';

/** Why nothing is asked of a session's server any more. */
export const SESSION_HAS_ENDED = 'Your session has ended.';

/** Say how full a storage is: `isilon: 1.2 TiB of 2.0 TiB used`. */
export function storageSummary(storage: IStorage, texts: ITexts): string {
  const name = storage.name || texts.__('Home');
  // Of a quota that is exceeded, or larger than what is free, used and free are not the whole.
  const whole = storage.is_quota ? storage.size : storage.used + storage.free;
  const [used, size] = [bytes(storage.used), bytes(whole)];
  return storage.is_quota
    ? texts.__('%1: %2 of your quota of %3 used', name, used, size)
    : texts.__('%1: %2 of %3 used', name, used, size);
}
