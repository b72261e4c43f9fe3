// What is said of the storage: how full it is, what is wrong with it, and the download of a folder.

import { bytes, type IStorage } from '../common/bytes';
import { when, type ITexts } from '../common/time';
import { storageSummary } from '../common/words';
import type { ITrouble } from './trouble';

/** What the command for a download says. */
export function downloadLabels(texts: ITexts) {
  return {
    label: texts.__('Download as ZIP'),
    caption: texts.__('Download this folder as a ZIP file, without hidden files and links')
  };
}

/** What the line below the file browser is about. */
export function lineLabel(texts: ITexts): string {
  return texts.__('Storage');
}

/** Say how full a storage is, and whether that is nearly all. */
export function lineText(storage: IStorage, isNearlyFull: boolean, texts: ITexts): string {
  const words = storageSummary(storage, texts);
  return isNearlyFull ? texts.__('%1, nearly full', words) : words;
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

/** Say which mount it is, and since when. JupyterLab shows 140 characters. */
export function troubleWords(trouble: ITrouble, support: string, texts: ITexts): string {
  const what = trouble.name ? `${trouble.name} (${trouble.point})` : trouble.point;
  return `${said(trouble, what, texts)} ${whom(support, texts)}`;
}

/** Say that a storage is nearly full. */
export function fullWords(storage: IStorage, texts: ITexts): string {
  return texts.__('%1. Delete or move what you do not need.', storageSummary(storage, texts));
}

function said(trouble: ITrouble, what: string, texts: ITexts): string {
  const since = when(trouble.since, Date.now() / 1000, texts);
  switch (trouble.state) {
    case 'hangs':
      return texts.__('%1 has not responded since %2. The portal keeps trying.', what, since);
    case 'fails':
      return texts.__('%1 has been failing since %2: %3.', what, since, trouble.reason);
    case 'missing':
      return texts.__('%1 is not mounted on this node.', what);
  }
}

function whom(support: string, texts: ITexts): string {
  return support ? texts.__('Help: %1', support) : texts.__('Tell the administrators.');
}
