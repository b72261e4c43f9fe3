// A cell that is run while its kernel starts waits for it.
//
// JupyterLab 4.6 runs nothing then, and says nothing (jupyterlab/jupyterlab#8490). Modules and
// images take seconds to load, in which a notebook can already be typed into.

import type { JupyterFrontEndPlugin } from '@jupyterlab/application';
import type { ICodeCellModel } from '@jupyterlab/cells';
import { INotebookCellExecutor, runCell } from '@jupyterlab/notebook';

import { isStarting, startEnded } from './start';

/** In the place of JupyterLab's own. */
export const executor: JupyterFrontEndPlugin<INotebookCellExecutor> = {
  id: 'data-scientist-portal:cell-executor',
  description: 'Runs cells, also those that are run before their kernel is there.',
  autoStart: true,
  provides: INotebookCellExecutor,
  activate: () => Object.freeze({ runCell: runWhenStarted })
};

async function runWhenStarted(options: INotebookCellExecutor.IRunCellOptions): Promise<boolean> {
  const { cell, sessionContext } = options;
  if (cell.model.type === 'code' && sessionContext && isStarting(sessionContext)) {
    const model = cell.model as ICodeCellModel;
    model.executionState = 'running';
    await startEnded(sessionContext);
    if (cell.isDisposed) {
      return false;
    }
    model.executionState = 'idle';
  }
  return runCell(options);
}
