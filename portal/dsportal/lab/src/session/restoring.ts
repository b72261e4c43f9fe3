// What was on the screen comes back without a pause.
//
// JupyterLab 4.6.6 reads it from the session and writes it back at once, and waits for that before
// it shows folders and launcher (`apputils:load-statedb`): half a second at least, since what it
// saves waits for further changes. A router's commands are executed in order of their ranks, and
// JupyterLab's own returns at once when it has been called before.

import { IRouter, type JupyterFrontEnd, type JupyterFrontEndPlugin } from '@jupyterlab/application';
import { IStateDB } from '@jupyterlab/statedb';

const LOAD = 'apputils:load-statedb';
const COMMAND = 'portal:load-statedb';
/** Between those of `?reset`, which is 20, and of JupyterLab's own, which is 30. */
const RANK = 25;

export const restoring: JupyterFrontEndPlugin<void> = {
  id: 'data-scientist-portal:restoring',
  description: 'Brings back what was on the screen without a pause.',
  autoStart: true,
  requires: [IRouter, IStateDB],
  activate: (app: JupyterFrontEnd, router: IRouter, state: IStateDB) => {
    app.commands.addCommand(COMMAND, {
      describedBy: { args: {} },
      execute: async args => {
        const search = new URLSearchParams(String(args['search'] ?? ''));
        // A clone is saved before the page leads to it.
        if (search.has('clone') || !app.commands.hasCommand(LOAD)) {
          return;
        }
        app.commands.execute(LOAD, args).catch(console.error);
        await state.toJSON();
      }
    });
    router.register({ command: COMMAND, pattern: /.?/, rank: RANK });
  }
};
