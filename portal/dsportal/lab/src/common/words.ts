// What more than one part says.

import { bytes, type IStorage } from './bytes';
import type { ITexts } from './time';

/** Why nothing is asked of a session's server any more. */
export const SESSION_HAS_ENDED = 'Your session has ended.';

/** Say how full a storage is: `isilon: 1.2 TiB of 2.0 TiB used`. */
export function storageSummary(storage: IStorage, texts: ITexts): string {
  const name = storage.name || texts.__('Home');
  const [used, size] = [bytes(storage.used), bytes(storage.used + storage.free)];
  return storage.is_quota
    ? texts.__('%1: %2 of your quota of %3 used', name, used, size)
    : texts.__('%1: %2 of %3 used', name, used, size);
}
