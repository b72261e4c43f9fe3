// What is said of sharing: the command, its dialog and each share.

import type { ITexts } from '../common/time';

/** What the command says. */
export function shareCommandLabels(texts: ITexts) {
  return {
    label: texts.__('Share…'),
    caption: texts.__('Let other users of the cluster read this notebook'),
    category: texts.__('Notebook Operations')
  };
}

/** What the dialog says whatever is shared. */
export function dialogLabels(texts: ITexts) {
  return {
    introduction: texts.__(
      'Others can read the notebook as it is saved now, and make their own copies.'
    ),
    audience: texts.__('Share with'),
    people: texts.__('Only these people'),
    link: texts.__('Everybody on the cluster who has the link'),
    names: texts.__('User names'),
    share: texts.__('Share'),
    shares: texts.__('Shared so far'),
    close: texts.__('Close')
  };
}

/** What the buttons of a share say. */
export function shareLabels(texts: ITexts) {
  return {
    copy: texts.__('Copy Link'),
    stop: texts.__('Stop Sharing')
  };
}

/** The dialog's title. */
export function dialogTitle(notebook: string, texts: ITexts): string {
  return texts.__('Share %1', notebook);
}

/** A group to share with. */
export function groupLabel(name: string, texts: ITexts): string {
  return texts.__('The group %1', name);
}

/** Whoever reads what is shared by a link. */
export function anyone(texts: ITexts): string {
  return texts.__('Everybody who has the link');
}

/** Say with whom another notebook is shared. */
export function ofOther(path: string, who: string, texts: ITexts): string {
  return texts.__('%1 (%2)', who, path);
}

/** Say of which moment a share is; in seconds since 1970. */
export function asOf(moment: number, texts: ITexts): string {
  return texts.__('as of %1', new Date(1000 * moment).toLocaleString());
}

/** Say whose link a button copies. */
export function copyLabel(who: string, texts: ITexts): string {
  return texts.__('Copy the link for %1', who);
}

/** Say whose share a button stops. */
export function stopLabel(who: string, texts: ITexts): string {
  return texts.__('Stop sharing with %1', who);
}

/** Say that a link is in the clipboard. */
export function linkCopied(texts: ITexts): string {
  return texts.__('The link was copied. Send it to them.');
}

/** Say that a share was stopped. */
export function stopped(who: string, texts: ITexts): string {
  return texts.__('No longer shared with %1.', who);
}
