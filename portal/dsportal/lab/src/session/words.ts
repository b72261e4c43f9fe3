// What the session's clock and its warnings say. JupyterLab shows 140 characters of a notification.

import { day, hour, when as whenAt, type ITexts } from '../common/time';
import type { State } from './fate';

function when(moment: number, texts: ITexts): string {
  return whenAt(moment, Date.now() / 1000, texts);
}

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

/** Say what happens to the GPUs when the page is closed; `deadline` is `null` without a limit. */
export function leaving(gpus: number, deadline: number | null, texts: ITexts): string {
  const held = texts._n('%1 GPU stays reserved for you', '%1 GPUs stay reserved for you', gpus);
  const until =
    deadline === null
      ? texts.__('until you stop the session')
      : texts.__('until %1, or until you stop the session', when(deadline, texts));
  return `${held} ${until}. ${texts.__('Kernels keep running when this tab is closed.')}`;
}

/** Say when the session ends. */
export function endsAt(deadline: number, texts: ITexts): string {
  return texts.__('This session ends at %1', when(deadline, texts));
}

/** Say how far its end can be moved. */
export function extendableUntil(until: number, texts: ITexts): string {
  return texts.__('It can be extended until %1', when(until, texts));
}

/** Ask by how much to move its end. */
export function extensionQuestion(deadline: number, timesLeft: number, texts: ITexts): string {
  const left = texts._n('%1 extension left.', '%1 extensions left.', timesLeft);
  return `${texts.__('Ends at %1.', when(deadline, texts))} ${left} ${texts.__('Extend by:')}`;
}

/** Say that its end was moved. */
export function extended(deadline: number, texts: ITexts): string {
  return texts.__('This session now ends at %1.', when(deadline, texts));
}

/** Say that its end was not moved, and why. */
export function notExtended(why: string, texts: ITexts): string {
  return texts.__('The session was not extended: %1', why);
}

/** Say that its end cannot be moved. */
export function notExtendable(reason: string | undefined, texts: ITexts): string {
  return reason || texts.__('This session cannot be extended.');
}

/** Say how a session ended; `moment` is `null` and `why` empty where nobody knows. */
export function sessionEnded(moment: number | null, why: string, texts: ITexts): string {
  if (moment === null) {
    return texts.__('It is no longer running.');
  }
  const on = day(moment, Date.now() / 1000);
  const at = hour(moment);
  const then = on ? texts.__('on %1 at %2', on, at) : texts.__('at %1', at);
  return why ? texts.__('It ended %1 because %2.', then, why) : texts.__('It ended %1.', then);
}

/** Say what of the open documents is kept; `moment`: of the last save, `null` if none is open. */
export function saved(changed: string[], moment: number | null, texts: ITexts): string {
  const last = moment === null ? '' : when(moment, texts);
  if (changed.length > 0) {
    const lost = texts.__(
      'Not saved: %1. The changes are only in this tab: copy what you need before you leave it.',
      changed.join(', ')
    );
    return last ? `${lost} ${texts.__('Documents were last saved at %1.', last)}` : lost;
  }
  return last && texts.__('Your open documents are saved, the last of them at %1.', last);
}

/** Say who else came into the session; the page may hear of it days later. */
export function visited(visit: { name: string; at: number }, texts: ITexts): string {
  return texts.__('%1 opened this session at %2.', visit.name, when(visit.at, texts));
}

/** Say why the session does not answer. */
export function notReached(state: State, texts: ITexts): string {
  if (state === 'stopping') {
    return texts.__('Your session is stopping.');
  }
  if (state === 'stranger') {
    return texts.__(
      'The session is not responding; reconnecting. If you are logged out, log in to the portal in another tab.'
    );
  }
  return state === 'running'
    ? texts.__('Your session is not responding. It is still running; reconnecting.')
    : texts.__('No connection. This alone does not stop your session; reconnecting.');
}

/** Say that the session's start is being asked for. */
export function startingAgain(texts: ITexts): string {
  return texts.__('Starting your session again.');
}

/** Say in the status bar that there is nothing to count any more. */
export function isOver(texts: ITexts): string {
  return texts.__('Session ended');
}

/** Ask before the session is stopped. */
export function stopQuestion(texts: ITexts): string {
  return texts.__(
    'This frees its GPUs for others. Kernels and terminals stop; changed documents are saved first.'
  );
}

/** Say that the session goes on because documents could not be saved. */
export function unsaved(paths: string[], texts: ITexts): string {
  return texts.__('The session was not stopped: could not save %1.', paths.join(', '));
}

/** Say that the session was not stopped, and why. */
export function notStopped(why: string, texts: ITexts): string {
  return texts.__('The session was not stopped: %1', why);
}
