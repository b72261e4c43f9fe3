// With whom a notebook is shared: what is chosen, and how it is said.

import type { IAudience, IShare } from './server';

/** Read names that were typed with commas, semicolons or spaces between them. */
export function namesIn(text: string): string[] {
  return [...new Set(text.split(/[\s,;]+/).filter(name => name !== ''))];
}

/** Say with whom something is shared; `anyone` is said of a link. */
export function namesOf(audience: IAudience, anyone: string): string {
  return audience.kind === 'link' ? anyone : audience.names.join(', ');
}

/** A notebook's shares, then those of others: one that was renamed or deleted has its own there. */
export function ownFirst(shares: readonly IShare[], path: string): IShare[] {
  const isOther = (share: IShare): number => (share.path === path ? 0 : 1);
  return [...shares].sort((one, other) => isOther(one) - isOther(other));
}
