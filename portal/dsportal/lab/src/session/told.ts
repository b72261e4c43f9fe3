// What this browser has told of, also before its page was loaded again.

/** Take all until this moment (seconds since 1970) for told; return until when that was before. */
export function toldBefore(
  until: number,
  key: string,
  storage: Pick<Storage, 'getItem' | 'setItem'>
): number {
  const before = Number(storage.getItem(key));
  storage.setItem(key, String(Math.max(before, until)));
  return before;
}
