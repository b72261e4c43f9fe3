// Cells that took long: their end is announced.

import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { PathExt } from '@jupyterlab/coreutils';
import { INotebookTracker, NotebookActions, type Notebook } from '@jupyterlab/notebook';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ITranslator } from '@jupyterlab/translation';

import { INotifier, Notifier } from './notifier';
import { Stopwatch } from './stopwatch';
import { cellEnded, notifyCommandLabels } from './words';

const PLUGIN = 'data-scientist-portal:notify';
const NOTIFY = 'data-scientist-portal:notify';

/** Notifications of long work. */
export const notify: JupyterFrontEndPlugin<INotifier> = {
  id: PLUGIN,
  description: 'Notifies the user when a cell or a job that ran long ends.',
  autoStart: true,
  requires: [INotebookTracker, ISettingRegistry, ITranslator],
  optional: [ICommandPalette],
  provides: INotifier,
  activate: async (
    app: JupyterFrontEnd,
    notebooks: INotebookTracker,
    registry: ISettingRegistry,
    translator: ITranslator,
    palette: ICommandPalette | null
  ): Promise<INotifier> => {
    const texts = translator.load('data_scientist_portal');
    const labels = notifyCommandLabels(texts);
    const settings = await registry.load(PLUGIN);
    const notifier = new Notifier(settings, texts);
    app.commands.addCommand(NOTIFY, {
      label: labels.label,
      caption: labels.caption,
      isToggled: () => notifier.isOn,
      isEnabled: () => notifier.isPossible,
      describedBy: { args: { type: 'object', properties: {} } },
      execute: () => (notifier.isOn ? notifier.turnOff() : notifier.turnOn())
    });
    palette?.addItem({ command: NOTIFY, category: labels.category });
    settings.changed.connect(() => app.commands.notifyCommandChanged(NOTIFY));

    const pathOf = (notebook: Notebook): string =>
      notebooks.find(panel => panel.content === notebook)?.context.path ?? '';
    const watch = new Stopwatch<Notebook, object>();
    NotebookActions.executionScheduled.connect((_, { cell }) => watch.begin(cell, Date.now()));
    NotebookActions.executed.connect((_, { notebook, cell, success }) => {
      const ran = watch.end(notebook, cell, Date.now());
      const path = pathOf(notebook);
      const title = cellEnded(PathExt.basename(path), success, texts);
      notifier.ended(title, ran / 1000, path);
    });
    return notifier;
  }
};
