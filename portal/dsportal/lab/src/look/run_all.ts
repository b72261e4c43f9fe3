// Run All in a notebook's toolbar, which JupyterLab has in a menu only: what a template is opened
// for takes one click. The button itself is in `schema/run-all.json`.

import type { JupyterFrontEndPlugin } from '@jupyterlab/application';

export const runAll: JupyterFrontEndPlugin<void> = {
  id: 'data-scientist-portal:run-all',
  description: "Adds Run All to a notebook's toolbar.",
  autoStart: true,
  activate: () => undefined
};
