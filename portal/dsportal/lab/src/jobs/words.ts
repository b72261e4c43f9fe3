// What is said of jobs in Slurm: their panel, their logs and their ends. Moments are seconds since
// 1970; no clock is read here.

import { bytes } from '../common/bytes';
import { isAway, isLoggedOut, wordsOf } from '../common/server';
import { hour, span, type ITexts } from '../common/time';
import { isWaiting, type IFree, type IJob } from './job';
import type { IJobs, IPiece } from './server';

const DAY_SECONDS = 86_400;

/** What the commands say. */
export function jobsCommandLabels(texts: ITexts) {
  return {
    show: texts.__('Show My Jobs'),
    showCaption: texts.__('Jobs in Slurm, their logs, and which GPUs are free'),
    openLog: texts.__('Open a Job’s Log'),
    jobArgument: texts.__('The number of the job'),
    nameArgument: texts.__('What the tab is called'),
    category: texts.__('Session')
  };
}

/** What the panel says whatever jobs there are. */
export function jobsPanelLabels(texts: ITexts) {
  return {
    tab: texts.__('Slurm: my jobs'),
    region: texts.__('Slurm'),
    refresh: texts.__('Refresh'),
    jobs: texts.__('My jobs'),
    ended: texts.__('Recently ended'),
    free: texts.__('Free GPUs'),
    loading: texts.__('Loading…'),
    none: texts.__('No jobs are running or waiting.')
  };
}

/** What a job's row says whatever job it is. */
export function rowLabels(texts: ITexts) {
  return {
    session: texts.__('This session'),
    howToEnd: texts.__('To end it: File › Stop Session.'),
    cancelling: texts.__('being cancelled'),
    log: texts.__('Log'),
    cancel: texts.__('Cancel')
  };
}

/** What the buttons before a job is cancelled say. */
export function cancelLabels(texts: ITexts) {
  return {
    keep: texts.__('Keep'),
    cancel: texts.__('Cancel Job')
  };
}

/** What stands above a log. */
export function logLabels(texts: ITexts) {
  return {
    bar: texts.__('Log'),
    output: texts.__('Output'),
    errors: texts.__('Errors'),
    follow: texts.__('Follow'),
    followCaption: texts.__('Stay at the end while the job is writing'),
    find: texts.__('Find'),
    findLabel: texts.__('Find in the log'),
    previous: texts.__('Previous match'),
    next: texts.__('Next match')
  };
}

/** What to call a job. */
export function nameOf(job: IJob, texts: ITexts): string {
  if (job.is_session) {
    return texts.__('Session');
  }
  return job.name || texts.__('Job %1', job.id);
}

/** Say in words how a job is, or how it ended. */
export function stateOf(job: IJob, texts: ITexts): string {
  const words: Record<string, string> = {
    BOOT_FAIL: texts.__('its node did not start'),
    CANCELLED: texts.__('cancelled'),
    COMPLETED: texts.__('finished'),
    COMPLETING: texts.__('ending'),
    CONFIGURING: texts.__('starting'),
    DEADLINE: texts.__('missed its deadline'),
    FAILED: failure(job, texts),
    LOST: texts.__('ended; outcome unknown'),
    NODE_FAIL: texts.__('its node failed'),
    OUT_OF_MEMORY: texts.__('out of memory'),
    PENDING: texts.__('waiting'),
    PREEMPTED: texts.__('gave way to another job'),
    RUNNING: texts.__('running'),
    STAGE_OUT: texts.__('ending'),
    STOPPED: texts.__('stopped'),
    SUSPENDED: texts.__('suspended'),
    TIMEOUT: texts.__('out of time')
  };
  return words[job.state] ?? (isWaiting(job) ? texts.__('waiting') : job.state.toLowerCase());
}

function failure(job: IJob, texts: ITexts): string {
  if (job.signal !== null) {
    return texts.__('failed, ended by signal %1', job.signal);
  }
  return job.exit_code === null
    ? texts.__('failed')
    : texts.__('failed, exit code %1', job.exit_code);
}

/** Say where a job is and what it holds: `Job 7 · 2 GPUs · node001`. */
export function placeOf(job: IJob, texts: ITexts): string {
  const gpus = job.gpus === null ? '' : texts._n('%1 GPU', '%1 GPUs', job.gpus);
  return [
    job.name || job.is_session ? texts.__('Job %1', job.id) : '',
    job.gpus === 0 ? texts.__('no GPU') : gpus,
    nodesOf(job.nodes, texts) || (job.partition ?? '')
  ]
    .filter(Boolean)
    .join(' · ');
}

function nodesOf(nodes: string[], texts: ITexts): string {
  return nodes.length > 2
    ? texts.__('%1 and %2 more nodes', nodes[0], nodes.length - 1)
    : nodes.join(', ');
}

/** Say why a job waits: the service's sentence, or in its place Slurm's word. */
export function reasonOf(job: IJob, texts: ITexts): string {
  const words: Record<string, string> = {
    BeginTime: texts.__('scheduled to start later'),
    Dependency: texts.__('waiting for another job to end'),
    JobArrayTaskLimit: texts.__('its array has reached its limit of running tasks'),
    JobHeldUser: texts.__('held by you'),
    Priority: texts.__('jobs with a higher priority come first'),
    Resources: texts.__('the resources it needs are not free')
  };
  const reason = (isWaiting(job) && job.reason) || '';
  return words[reason] ?? (/^\w+$/.test(reason) ? texts.__('Slurm says: %1', reason) : reason);
}

/** Say what its time is: how long it runs, what is left, when it starts, when it ended. */
export function timeOf(job: IJob, now: number, texts: ITexts): string {
  if (job.is_over) {
    const ran = job.started !== null && job.ends !== null ? job.ends - job.started : null;
    return together([
      job.ends === null ? '' : texts.__('ended %1', moment(job.ends, now)),
      ran === null ? '' : texts.__('ran for %1', span(ran, texts))
    ]);
  }
  if (isWaiting(job)) {
    const waited = job.submitted === null ? null : span(now - job.submitted, texts);
    const start = job.expected_start;
    return together([
      waited === null ? '' : texts.__('waiting for %1', waited),
      start === null || start < now ? '' : texts.__('expected to start %1', moment(start, now))
    ]);
  }
  return together([
    job.ends === null || job.ends < now ? '' : texts.__('%1 left', span(job.ends - now, texts)),
    job.started === null ? '' : texts.__('running for %1', span(now - job.started, texts))
  ]);
}

/** Join parts that a narrow panel does not break. */
function together(parts: string[]): string {
  return parts
    .filter(Boolean)
    .map(part => part.replaceAll(' ', '\u00a0'))
    .join(', ');
}

/** Write a moment for people, with its day where that is not today's or near. */
export function moment(at: number, now: number): string {
  if (Math.abs(at - now) < DAY_SECONDS / 2) {
    return hour(at);
  }
  const day = new Date(1000 * at).toLocaleDateString([], { month: 'short', day: 'numeric' });
  return `${day}, ${hour(at)}`;
}

/** Say how many of some GPUs are free. */
export function freeText(found: IFree, texts: ITexts): string {
  return texts.__('%1 of %2 free', found.free, found.total);
}

/** Say which of what is shown is old or missing, or nothing. */
export function staleness(told: IJobs, texts: ITexts): string {
  if (told.source === 'service') {
    return '';
  }
  if (told.source === 'slurm') {
    const updates = texts.__(
      'Live data is unavailable; jobs update every %1 s.',
      told.every_seconds
    );
    return told.free === null ? `${updates} ${texts.__('Free GPUs are not known.')}` : updates;
  }
  return told.as_of === null
    ? texts.__('Neither the cluster page nor Slurm is responding.')
    : texts.__(
        'Neither the cluster page nor Slurm is responding. Last updated at %1.',
        moment(told.as_of, told.now)
      );
}

/** Say why nothing could be read. */
export function notRead(error: unknown, texts: ITexts): string {
  if (isLoggedOut(error)) {
    return texts.__(
      'You are logged out of the portal. Your session is still running: log in and open it in another tab.'
    );
  }
  return isAway(error)
    ? texts.__('Your session is not responding. It may have ended.')
    : wordsOf(error);
}

/** Say which job's log a button opens. */
export function logButtonLabel(id: string, name: string, texts: ITexts): string {
  return texts.__('Log of job %1, %2', id, name);
}

/** Say which job a button cancels. */
export function cancelButtonLabel(id: string, name: string, texts: ITexts): string {
  return texts.__('Cancel job %1, %2', id, name);
}

/** Ask before a job is cancelled. */
export function cancelQuestion(job: IJob, texts: ITexts): string {
  return texts.__('Cancel job %1?', job.id);
}

/** Say which job it is, and what is lost with it. */
export function cancelLoss(job: IJob, texts: ITexts): string {
  const what = `${nameOf(job, texts)} (${placeOf(job, texts)}): ${stateOf(job, texts)}.`;
  const loss = job.is_session
    ? texts.__('It is another of your sessions: anything not saved there will be lost.')
    : texts.__('Anything it has not written yet will be lost.');
  return `${what} ${loss}`;
}

/** Say that a job was not cancelled, and why. */
export function notCancelled(id: string, why: string, texts: ITexts): string {
  return texts.__('Job %1 was not cancelled: %2', id, why);
}

/** Say that a job has ended, and how. */
export function endOf(job: IJob, texts: ITexts): string {
  return `${nameOf(job, texts)}: ${stateOf(job, texts)}`;
}

/** Say how many jobs have ended since the last look, and how many of them failed. */
export function endOfMany(ended: number, failed: number, texts: ITexts): string {
  return failed
    ? texts.__('%1 jobs have ended, %2 of them failed', ended, failed)
    : texts.__('%1 jobs have ended', ended);
}

/** What shows all jobs. */
export function showJobsLabel(texts: ITexts): string {
  return texts.__('Show Jobs');
}

/** What opens the log of a job that failed. */
export function openLogLabel(texts: ITexts): string {
  return texts.__('Open Log');
}

/** The title of a log's tab, by the job's name. */
export function logTitle(job: IJob, texts: ITexts): string {
  return texts.__('Log of %1', nameOf(job, texts));
}

/** The title of a log's tab, where only the job's number is known. */
export function logTitleOf(id: string, texts: ITexts): string {
  return texts.__('Log of job %1', id);
}

/** What a log's tab has in it. */
export function logCaption(id: string, texts: ITexts): string {
  return texts.__('Output of job %1', id);
}

/** Say which file a log is. */
export function logFile(piece: IPiece, isEndOnly: boolean, texts: ITexts): string {
  const start = isEndOnly ? texts.__('only the end is shown') : '';
  return [piece.path, bytes(piece.size), start].filter(Boolean).join(' · ');
}

/** Say whether it is complete; nothing of it changes while a job writes. */
export function logState(piece: IPiece, isComplete: boolean, texts: ITexts): string {
  // Of a job that ended long ago nobody knows.
  const writing = piece.is_over === null ? '' : texts.__('still being written');
  return isComplete ? texts.__('the job has ended') : writing;
}

/** Say which of all matches is shown, counted from 1. */
export function matchText(match: number, matches: number, texts: ITexts): string {
  return texts.__('%1 of %2', match, matches);
}

/** Say that there is no match. */
export function noMatch(texts: ITexts): string {
  return texts.__('not found');
}
