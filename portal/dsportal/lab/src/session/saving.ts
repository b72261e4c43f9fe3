// What is on the screen is written when it has changed, and not otherwise.
//
// JupyterLab 4.6.6's file browser says how its columns stand each time that it has looked at its
// folder, which is every ten seconds, and each time the whole workspace is written into the home
// (`DirListing._onModelRefreshed`, `apputils:state`).

import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { IStateDB } from '@jupyterlab/statedb';

/** Have a database take only values that are new to it; in the order in which they come. */
export function skipUnchanged(state: IStateDB): void {
  const save = state.save.bind(state);
  let last: Promise<void> = Promise.resolve();
  state.save = (id, value) => {
    const saved = last.then(async () => {
      if (JSON.stringify(await state.fetch(id)) !== JSON.stringify(value)) {
        await save(id, value);
      }
    });
    last = saved.catch(() => {});
    return saved;
  };
}

export const saving: JupyterFrontEndPlugin<void> = {
  id: 'data-scientist-portal:saving',
  description: 'Writes what is on the screen only when it has changed.',
  autoStart: true,
  requires: [IStateDB],
  activate: (_app: JupyterFrontEnd, state: IStateDB) => skipUnchanged(state)
};
