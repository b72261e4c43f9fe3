// What the session's clock, its commands and dialogs, and its warnings say. JupyterLab shows 140
// characters of a notification.

import { day, hour, when as whenAt, type ITexts } from '../common/time';
import type { State } from './fate';

function when(moment: number, texts: ITexts): string {
  return whenAt(moment, Date.now() / 1000, texts);
}

/** What the command that moves the end says. */
export function extendCommandLabels(texts: ITexts) {
  return {
    label: texts.__('Extend Session…'),
    caption: texts.__('Move the end of this session, as far as the limits allow'),
    minutesArgument: texts.__('Minutes to add; asked for if absent'),
    category: texts.__('Session')
  };
}

/** What the dialog that asks by how much says. */
export function extensionDialogLabels(texts: ITexts) {
  return {
    title: texts.__('Extend Session'),
    extend: texts.__('Extend')
  };
}

/** What the command that stops the session says, and its button in the status bar. */
export function stopCommandLabels(texts: ITexts) {
  return {
    label: texts.__('Stop Session…'),
    caption: texts.__('Save what has changed, end this session and free its GPUs'),
    category: texts.__('Session'),
    button: texts.__('Stop')
  };
}

/** What the dialog before the session is stopped says, above `stopQuestion`. */
export function stopDialogLabels(texts: ITexts) {
  return {
    title: texts.__('Stop this session?'),
    stop: texts.__('Stop')
  };
}

/** What the reminder of reserved GPUs says, around `leaving`. */
export function leavingDialogLabels(texts: ITexts) {
  return {
    title: texts.__('Your GPUs stay reserved'),
    dismiss: texts.__('Do not remind me again')
  };
}

/** What the dialog of a session that has ended says, around `sessionEnded`. */
export function endDialogLabels(texts: ITexts) {
  return {
    title: texts.__('Your session has ended'),
    close: texts.__('Close'),
    again: texts.__('Start Again'),
    againCaption: texts.__(
      'Start a session with the same choices in this tab and reopen this document'
    )
  };
}

/** What keeps the session instead of ending it. */
export function keepLabel(texts: ITexts): string {
  return texts.__('Keep Session');
}

/** What a warning's button does; `more`: an amount of time. */
export function extendLabel(more: string, texts: ITexts): string {
  return texts.__('Extend by %1', more);
}

/** Say how much time is left. */
export function timeLeft(left: string, texts: ITexts): string {
  return texts.__('%1 left', left);
}

/** Say what a session holds and where: `2 GPUs · node001`. */
export function facts(job: { gpus: number; node: string }, texts: ITexts): string {
  const gpus = job.gpus > 0 ? texts._n('%1 GPU', '%1 GPUs', job.gpus) : texts.__('no GPU');
  return [gpus, job.node].filter(Boolean).join(' · ');
}

/** Say the same with the job: `Job 7 on node001, 2 GPUs`. */
export function jobFacts(
  job: { job_id: string; node: string; gpus: number },
  texts: ITexts
): string {
  const place = texts.__('Job %1 on %2', job.job_id, job.node);
  return `${place}, ${texts._n('%1 GPU', '%1 GPUs', job.gpus)}`;
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
  return last && texts.__('Your open documents are saved; the last save was at %1.', last);
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

/** Ask before the session is stopped; `lost`: changed documents that cannot be saved. */
export function stopQuestion(lost: string[], texts: ITexts): string {
  const question = texts.__(
    'This frees its GPUs for others. Kernels and terminals stop; changed documents are saved first.'
  );
  return lost.length > 0
    ? `${question} ${texts.__('These are read-only, and their changes will be lost: %1.', lost.join(', '))}`
    : question;
}

/** Say that the session goes on because documents could not be saved. */
export function unsaved(paths: string[], texts: ITexts): string {
  return texts.__('The session was not stopped: could not save %1.', paths.join(', '));
}

/** Say that the session was not stopped, and why. */
export function notStopped(why: string, texts: ITexts): string {
  return texts.__('The session was not stopped: %1', why);
}
