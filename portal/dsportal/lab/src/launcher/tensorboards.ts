// TensorBoards as data: which folder one is wanted for, and how those that run are shown.

/** What the session's server knows of a TensorBoard that runs: portal/dsportal/session/tensorboard/routes.py. */
export interface IBoard {
  id: string;
  /** As the file browser knows it: below the home. */
  folder: string;
  /** The same without links. */
  place: string;
  /** The path of its page. */
  address: string;
}

/** What of a file browser's item matters. */
export interface IItem {
  type: string;
  name: string;
  path: string;
}

/** What TensorBoard looks for in a file's name. */
const EVENTS = 'tfevents';

/** A folder as users know it. */
export function shown(folder: string): string {
  return folder ? `~/${folder}` : '~';
}

/** The one folder that is selected; `null` for none, or several things. */
export function selectedFolder(selected: IItem[]): string | null {
  const [first, ...others] = selected;
  return first?.type === 'directory' && others.length === 0 ? first.path : null;
}

/** Whether a folder's own files are events. */
export function holdsEvents(items: Iterable<IItem>): boolean {
  return [...items].some(item => item.type !== 'directory' && item.name.includes(EVENTS));
}

/** Where a folder's TensorBoard is opened, below the session's address. */
export function addressFor(folder: string): string {
  return `tensorboard/?folder=${encodeURIComponent(folder)}`;
}

/** Where a TensorBoard is opened for somebody who is in a folder but does not name it. */
export function addressNear(folder: string): string {
  return `tensorboard/?near=${encodeURIComponent(folder)}`;
}
