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
import { ITranslator, type TranslationBundle } from '@jupyterlab/translation';
import { Poll } from '@lumino/polling';

import { addStyle } from '../common/elements';
import { nameOf, placeOf, stateOf, type IJob } from './job';
import { JobList } from './list';
import { JobLog } from './log';
import { JOB_STYLE, slurmIcon } from './style';
import { cancelJob, readJobs } from './server';
import { wordsOf } from '../common/server';

const SHOW = 'data-scientist-portal:show-jobs';
const LOG = 'data-scientist-portal:open-job-log';
const PANEL = 'data-scientist-portal-jobs';
const READ_MILLISECONDS = 5_000;

/** The user's jobs, in JupyterLab. */
export const jobs: JupyterFrontEndPlugin<void> = {
  id: 'data-scientist-portal:jobs',
  description: "Shows the user's jobs in Slurm, their logs, and which GPUs are free.",
  autoStart: true,
  requires: [ITranslator],
  optional: [ILayoutRestorer, ICommandPalette],
  activate: (
    app: JupyterFrontEnd,
    translator: ITranslator,
    restorer: ILayoutRestorer | null,
    palette: ICommandPalette | null
  ): void => {
    const texts = translator.load('data_scientist_portal');
    addStyle(JOB_STYLE);
    const logs = new WidgetTracker<MainAreaWidget<JobLog>>({ namespace: 'portal-job-logs' });
    const panel = makePanel(app, texts);
    app.shell.add(panel, 'left', { rank: 250, type: 'Slurm' });
    app.commands.addCommand(SHOW, {
      label: texts.__('Show My Jobs'),
      caption: texts.__('Jobs in Slurm, their logs, and which GPUs are free'),
      describedBy: { args: { type: 'object', properties: {} } },
      execute: () => app.shell.activateById(PANEL)
    });
    app.commands.addCommand(LOG, {
      label: texts.__('Open a Job’s Log'),
      describedBy: {
        args: {
          type: 'object',
          required: ['job'],
          properties: {
            job: { type: 'string', description: texts.__('The number of the job') },
            name: { type: 'string', description: texts.__('What the tab is called') }
          }
        }
      },
      execute: args => openLog(app, texts, logs, String(args.job ?? ''), String(args.name ?? ''))
    });
    palette?.addItem({ command: SHOW, category: texts.__('Session') });
    restorer?.add(panel, PANEL);
    void restorer?.restore(logs, {
      command: LOG,
      args: ({ content, title }) => ({ job: content.job, name: title.label }),
      name: ({ content }) => content.job
    });
  }
};

function makePanel(app: JupyterFrontEnd, texts: TranslationBundle): JobList {
  const settings = app.serviceManager.serverSettings;
  let isAnew = true;
  const panel = new JobList(texts, {
    refresh: () => look(),
    cancel: job => void cancel(job),
    openLog: job => {
      const name = texts.__('Log of %1', nameOf(job, texts));
      void app.commands.execute(LOG, { job: job.id, name });
    }
  });
  panel.id = PANEL;
  panel.title.icon = slurmIcon;
  panel.title.caption = texts.__('Slurm: my jobs');
  panel.node.setAttribute('aria-label', texts.__('Slurm: my jobs'));
  const poll = new Poll({
    name: 'data-scientist-portal:jobs',
    frequency: { interval: READ_MILLISECONDS, backoff: true, max: 12 * READ_MILLISECONDS },
    standby: () => (panel.isVisible ? 'when-hidden' : true),
    factory: async () => {
      const anew = isAnew;
      isAnew = false;
      try {
        panel.present(await readJobs(settings, anew));
      } catch (error) {
        panel.fail(texts.__('Your session is not responding. It may have ended.'));
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
      Notification.error(texts.__('Job %1 was not cancelled: %2', job.id, words), {
        autoClose: false
      });
    }
  };
  panel.onShown = look;
  return panel;
}

async function isConfirmed(job: IJob, texts: TranslationBundle): Promise<boolean> {
  const what = `${nameOf(job, texts)} (${placeOf(job, texts)}): ${stateOf(job, texts)}.`;
  const loss = job.is_session
    ? texts.__('It is another of your sessions: anything not saved there will be lost.')
    : texts.__('Anything it has not written yet will be lost.');
  const answer = await showDialog({
    title: texts.__('Cancel job %1?', job.id),
    body: `${what} ${loss}`,
    buttons: [
      Dialog.cancelButton({ label: texts.__('Keep') }),
      Dialog.warnButton({ label: texts.__('Cancel Job') })
    ]
  });
  return answer.button.accept;
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
  widget.title.label = name || texts.__('Log of job %1', job);
  widget.title.caption = texts.__('Output of job %1', job);
  widget.title.icon = slurmIcon;
  widget.title.closable = true;
  void logs.add(widget);
  app.shell.add(widget, 'main', { type: 'Log' });
  app.shell.activateById(widget.id);
}
