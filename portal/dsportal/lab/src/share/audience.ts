// With whom a notebook is shared: what is chosen, and how it is said.

import type { IAudience } from './server';

/** Read names that were typed with commas, semicolons or spaces between them. */
export function namesIn(text: string): string[] {
  return [...new Set(text.split(/[\s,;]+/).filter(name => name !== ''))];
}

/** Say with whom something is shared; `anyone` is said of a link. */
export function namesOf(audience: IAudience, anyone: string): string {
  return audience.kind === 'link' ? anyone : audience.names.join(', ');
}
