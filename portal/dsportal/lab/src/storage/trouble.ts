// What is wrong with the storage, in words.

import { summary, type IStorage } from '../common/bytes';
import { hour, type ITexts } from '../common/time';

/** A mount that is not as it should be: portal/dsportal/session/files/mounts.py, notices.py. */
export interface ITrouble {
  /** The link in the home that leads to it; `~` for the home, empty for none. */
  name: string;
  point: string;
  state: 'hangs' | 'fails' | 'missing';
  /** Seconds since 1970. */
  since: number;
  reason: string;
}

/** What the landing screen says of the storage. */
export interface INotices {
  mounts: ITrouble[];
  storages: IStorage[];
}

/** Say which mount it is, and since when. JupyterLab shows 140 characters. */
export function troubleWords(trouble: ITrouble, support: string, texts: ITexts): string {
  const what = trouble.name ? `${trouble.name} (${trouble.point})` : trouble.point;
  return `${said(trouble, what, texts)} ${whom(support, texts)}`;
}

/** Say that a storage is nearly full. */
export function fullWords(storage: IStorage, texts: ITexts): string {
  return texts.__('%1. Delete or move what you do not need.', summary(storage, texts));
}

function said(trouble: ITrouble, what: string, texts: ITexts): string {
  const since = hour(trouble.since);
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
