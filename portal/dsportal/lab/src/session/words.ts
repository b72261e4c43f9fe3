// What the session's clock and its warnings say. JupyterLab shows 140 characters of a notification.

import { hour, type ITexts } from '../common/time';

/** Warn that the time is nearly up; `reason`: why there is no more of it, or empty. */
export function endWarning(left: string, deadline: number, reason: string, texts: ITexts): string {
  const end = texts.__('This session ends in %1, at %2.', left, hour(deadline));
  return reason
    ? `${end} ${reason}`
    : `${end} ${texts.__('Kernels and terminals stop then; changed documents are saved first.')}`;
}

/** Warn that nobody uses the session. */
export function unusedWarning(unused: string, end: number, texts: ITexts): string {
  return [
    texts.__('Nobody has used this session for %1.', unused),
    texts.__('It ends at %1 to free its GPUs for others.', hour(end)),
    texts.__('Click or press a key to keep it.')
  ].join(' ');
}

/** Say when the session ends. */
export function endsAt(deadline: number, texts: ITexts): string {
  return texts.__('This session ends at %1', hour(deadline));
}

/** Say how far its end can be moved. */
export function extendableUntil(until: number, texts: ITexts): string {
  return texts.__('It can be extended until %1', hour(until));
}

/** Ask by how much to move its end. */
export function extensionQuestion(deadline: number, timesLeft: number, texts: ITexts): string {
  const left = texts._n('%1 extension left.', '%1 extensions left.', timesLeft);
  return `${texts.__('Ends at %1.', hour(deadline))} ${left} ${texts.__('Extend by:')}`;
}

/** Say that its end was moved. */
export function extended(deadline: number, texts: ITexts): string {
  return texts.__('This session now ends at %1.', hour(deadline));
}

/** Say that its end was not moved, and why. */
export function notExtended(why: string, texts: ITexts): string {
  return texts.__('The session was not extended: %1', why);
}

/** Say that its end cannot be moved. */
export function notExtendable(reason: string | undefined, texts: ITexts): string {
  return reason || texts.__('This session cannot be extended.');
}
