// Who else came into this session: its user is told.

import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { ITranslator } from '@jupyterlab/translation';
import { Poll } from '@lumino/polling';

import { readVisits } from '../common/server';
import { visited } from './words';

const READ_MILLISECONDS = 60_000;

/** Tells of visitors, each visit once. */
export const visits: JupyterFrontEndPlugin<void> = {
  id: 'data-scientist-portal:visits',
  description: 'Tells the user who else opened this session.',
  autoStart: true,
  requires: [ITranslator],
  activate: (app: JupyterFrontEnd, translator: ITranslator): void => {
    const texts = translator.load('data_scientist_portal');
    let toldUntil = 0;
    const poll = new Poll({
      name: 'data-scientist-portal:visits',
      auto: false,
      frequency: { interval: READ_MILLISECONDS, backoff: true, max: 5 * READ_MILLISECONDS },
      standby: 'when-hidden',
      factory: async () => {
        const known = (await readVisits(app.serviceManager.serverSettings)).visits;
        for (const visit of known.filter(one => one.at > toldUntil)) {
          Notification.warning(visited(visit, texts), { autoClose: false });
        }
        toldUntil = Math.max(toldUntil, ...known.map(one => one.at));
      }
    });
    void app.restored.then(() => poll.start());
  }
};
