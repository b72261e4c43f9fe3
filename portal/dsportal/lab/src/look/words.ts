// What the logo and the Help menu say.

import type { ITexts } from '../common/time';

/** What the command for the documentation says. */
export function documentationLabels(texts: ITexts) {
  return {
    label: texts.__('Tutorials and How-Tos'),
    caption: texts.__('Open the portal’s documentation in a tab'),
    category: texts.__('Help')
  };
}

/** Say where the logo leads; `title`: the portal's. */
export function logoLabel(title: string, texts: ITexts): string {
  return texts.__('%1: your sessions', title);
}
