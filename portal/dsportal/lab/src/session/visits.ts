// Who else came into this session: its user is told.

import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { ITranslator } from '@jupyterlab/translation';
import { Poll } from '@lumino/polling';

import { readVisits } from '../common/server';
import { toldBefore } from './told';
import { visited } from './words';

const READ_MILLISECONDS = 60_000;

/** Tells of visitors, each visit once; it stays listed among JupyterLab's notifications. */
export const visits: JupyterFrontEndPlugin<void> = {
  id: 'data-scientist-portal:visits',
  description: 'Tells the user who else opened this session.',
  autoStart: true,
  requires: [ITranslator],
  activate: (app: JupyterFrontEnd, translator: ITranslator): void => {
    const texts = translator.load('data_scientist_portal');
    const settings = app.serviceManager.serverSettings;
    const key = `data-scientist-portal:visits-told ${settings.baseUrl}`;
    let listedUntil = 0;
    const poll = new Poll({
      name: 'data-scientist-portal:visits',
      auto: false,
      frequency: { interval: READ_MILLISECONDS, backoff: true, max: 5 * READ_MILLISECONDS },
      standby: 'when-hidden',
      factory: async () => {
        const known = (await readVisits(settings)).visits;
        const until = Math.max(listedUntil, ...known.map(one => one.at));
        const told = toldBefore(until, key, localStorage);
        for (const visit of known.filter(one => one.at > listedUntil)) {
          // 0: in the list alone.
          const autoClose = visit.at > told ? false : 0;
          Notification.warning(visited(visit, texts), { autoClose });
        }
        listedUntil = until;
      }
    });
    void app.restored.then(() => poll.start());
  }
};
