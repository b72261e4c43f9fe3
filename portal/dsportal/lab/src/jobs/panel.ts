// My jobs in Slurm: a panel beside the files, and logs that follow.

import { ILayoutRestorer } from '@jupyterlab/application';
import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import {
  Dialog,
  ICommandPalette,
  MainAreaWidget,
  Notification,
  showDialog,
  WidgetTracker
} from '@jupyterlab/apputils';
import type { ServerConnection } from '@jupyterlab/services';
import { ITranslator, type TranslationBundle } from '@jupyterlab/translation';
import { Poll } from '@lumino/polling';

import { addStyle } from '../common/elements';
import { lookOf, type IJob } from './job';
import { JobList } from './list';
import { JobLog } from './log';
import { lastLines } from './log_text';
import { JOB_STYLE, slurmIcon } from './style';
import { cancelJob, readJobs, readLog, watchJobs, type IJobs } from './server';
import { JobWatch, ranSeconds } from './watch';
import {
  cancelLabels,
  cancelLoss,
  cancelQuestion,
  endOf,
  endOfMany,
  jobsCommandLabels,
  jobsPanelLabels,
  logCaption,
  logTitle,
  logTitleOf,
  notCancelled,
  notRead,
  openLogLabel,
  showJobsLabel
} from './words';
import { wordsOf } from '../common/server';
import { INotifier } from '../notify/notifier';

const SHOW = 'data-scientist-portal:show-jobs';
const LOG = 'data-scientist-portal:open-job-log';
const PANEL = 'data-scientist-portal-jobs';
const READ_MILLISECONDS = 5_000;
/** How often a job's end is looked for while the panel is not in sight, and when first. */
const WATCH_MILLISECONDS = 60_000;
const FIRST_WATCH_MILLISECONDS = 10_000;
/** Of more that have ended since the last look, one notice says how many. */
const MOST_ANNOUNCED = 3;
/** JupyterLab shows 140 characters of a notification. */
const LOG_LETTERS = 80;

/** The user's jobs, in JupyterLab. */
export const jobs: JupyterFrontEndPlugin<void> = {
  id: 'data-scientist-portal:jobs',
  description: "Shows the user's jobs in Slurm, their logs, and which GPUs are free.",
  autoStart: true,
  requires: [ITranslator],
  optional: [ILayoutRestorer, ICommandPalette, INotifier],
  activate: (
    app: JupyterFrontEnd,
    translator: ITranslator,
    restorer: ILayoutRestorer | null,
    palette: ICommandPalette | null,
    notifier: INotifier | null
  ): void => {
    const texts = translator.load('data_scientist_portal');
    const labels = jobsCommandLabels(texts);
    addStyle(JOB_STYLE);
    const logs = new WidgetTracker<MainAreaWidget<JobLog>>({ namespace: 'portal-job-logs' });
    const panel = makePanel(app, texts, notifier);
    app.shell.add(panel, 'left', { rank: 250, type: 'Slurm' });
    app.commands.addCommand(SHOW, {
      label: labels.show,
      caption: labels.showCaption,
      describedBy: { args: { type: 'object', properties: {} } },
      execute: () => app.shell.activateById(PANEL)
    });
    app.commands.addCommand(LOG, {
      label: labels.openLog,
      describedBy: {
        args: {
          type: 'object',
          required: ['job'],
          properties: {
            job: { type: 'string', description: labels.jobArgument },
            name: { type: 'string', description: labels.nameArgument }
          }
        }
      },
      execute: args => openLog(app, texts, logs, String(args.job ?? ''), String(args.name ?? ''))
    });
    palette?.addItem({ command: SHOW, category: labels.category });
    restorer?.add(panel, PANEL);
    void restorer?.restore(logs, {
      command: LOG,
      args: ({ content, title }) => ({ job: content.job, name: title.label }),
      name: ({ content }) => content.job
    });
  }
};

function makePanel(
  app: JupyterFrontEnd,
  texts: TranslationBundle,
  notifier: INotifier | null
): JobList {
  const settings = app.serviceManager.serverSettings;
  let isAnew = true;
  const panel = new JobList(texts, {
    refresh: () => look(),
    cancel: job => void cancel(job),
    openLog: job => showLog(app, texts, job)
  });
  const watch = new JobWatch();
  const taking = (told: IJobs): IJobs => {
    announceAll(app, texts, notifier, watch.take(told.jobs, told.now));
    return told;
  };
  const ends = new Poll({
    auto: false,
    name: 'data-scientist-portal:jobs-watch',
    frequency: { interval: WATCH_MILLISECONDS, backoff: true, max: 5 * WATCH_MILLISECONDS },
    // What was seen to run ends in hidden tabs too.
    standby: () => (watch.hasOpen ? 'never' : 'when-hidden'),
    factory: async () => taking(await watchJobs(settings))
  });
  void app.restored.then(() =>
    ends.schedule({ phase: 'started', interval: FIRST_WATCH_MILLISECONDS })
  );
  panel.id = PANEL;
  panel.title.icon = slurmIcon;
  panel.title.caption = jobsPanelLabels(texts).tab;
  panel.node.setAttribute('aria-label', jobsPanelLabels(texts).tab);
  const poll = new Poll({
    name: 'data-scientist-portal:jobs',
    frequency: { interval: READ_MILLISECONDS, backoff: true, max: 12 * READ_MILLISECONDS },
    standby: () => (panel.isVisible ? 'when-hidden' : true),
    factory: async () => {
      const anew = isAnew;
      isAnew = false;
      try {
        panel.present(taking(await readJobs(settings, anew)));
      } catch (error) {
        panel.fail(notRead(error, texts));
        throw error;
      }
    }
  });
  const look = (): void => {
    isAnew = true;
    void poll.refresh();
  };
  const cancel = async (job: IJob): Promise<void> => {
    if (!(await isConfirmed(job, texts))) {
      return;
    }
    try {
      await cancelJob(settings, job.id);
      panel.cancelling(job);
    } catch (error) {
      const words = wordsOf(error);
      Notification.error(notCancelled(job.id, words, texts), {
        autoClose: false
      });
    }
  };
  panel.onShown = look;
  return panel;
}

async function isConfirmed(job: IJob, texts: TranslationBundle): Promise<boolean> {
  const labels = cancelLabels(texts);
  const answer = await showDialog({
    title: cancelQuestion(job, texts),
    body: cancelLoss(job, texts),
    buttons: [
      Dialog.cancelButton({ label: labels.keep }),
      Dialog.warnButton({ label: labels.cancel })
    ]
  });
  return answer.button.accept;
}

function showLog(app: JupyterFrontEnd, texts: TranslationBundle, job: IJob): void {
  void app.commands.execute(LOG, { job: job.id, name: logTitle(job, texts) });
}

/** Say which jobs have ended; of many at once, how many have failed. */
function announceAll(
  app: JupyterFrontEnd,
  texts: TranslationBundle,
  notifier: INotifier | null,
  ended: IJob[]
): void {
  if (ended.length <= MOST_ANNOUNCED) {
    ended.forEach(job => void announce(app, texts, notifier, job));
    return;
  }
  const failed = ended.filter(job => lookOf(job) === 'bad').length;
  const words = endOfMany(ended.length, failed, texts);
  notifier?.ended(words, Math.max(...ended.map(ranSeconds)), 'jobs');
  if (failed) {
    const show = { label: showJobsLabel(texts), callback: () => app.shell.activateById(PANEL) };
    Notification.error(words, { autoClose: false, actions: [show] });
  }
}

/** Say that a job has ended: in the page where it failed, and by the browser where it ran long. */
async function announce(
  app: JupyterFrontEnd,
  texts: TranslationBundle,
  notifier: INotifier | null,
  job: IJob
): Promise<void> {
  const words = endOf(job, texts);
  if (job.state !== 'CANCELLED') {
    notifier?.ended(words, ranSeconds(job), `job-${job.id}`);
  }
  if (lookOf(job) === 'bad') {
    const end = await endOfLog(app.serviceManager.serverSettings, job);
    Notification.error(end ? `${words}\n${end}` : words, {
      autoClose: false,
      actions: [{ label: openLogLabel(texts), callback: () => showLog(app, texts, job) }]
    });
  }
}

/** The last lines of its errors, or of its output. */
async function endOfLog(settings: ServerConnection.ISettings, job: IJob): Promise<string> {
  try {
    const out = await readLog(settings, job.id, 'out', '', 0);
    const err = out.has_err ? await readLog(settings, job.id, 'err', '', 0) : out;
    return lastLines(err.text || out.text, LOG_LETTERS);
  } catch {
    // It failed before it wrote anything, or its log is not to be read: the button says why.
    return '';
  }
}

function openLog(
  app: JupyterFrontEnd,
  texts: TranslationBundle,
  logs: WidgetTracker<MainAreaWidget<JobLog>>,
  job: string,
  name: string
): void {
  const opened = logs.find(widget => widget.content.job === job);
  if (opened) {
    app.shell.activateById(opened.id);
    return;
  }
  const widget = new MainAreaWidget({
    content: new JobLog(job, app.serviceManager.serverSettings, texts)
  });
  widget.toolbar.hide();
  widget.id = `data-scientist-portal-log-${job}`;
  widget.title.label = name || logTitleOf(job, texts);
  widget.title.caption = logCaption(job, texts);
  widget.title.icon = slurmIcon;
  widget.title.closable = true;
  void logs.add(widget);
  app.shell.add(widget, 'main', { type: 'Log' });
  app.shell.activateById(widget.id);
}
