// Stop: in the File menu, the palette and the status bar.

import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { Dialog, ICommandPalette, Notification, showDialog } from '@jupyterlab/apputils';
import { IDocumentManager } from '@jupyterlab/docmanager';
import { IStatusBar } from '@jupyterlab/statusbar';
import { ITranslator } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';

import { readOnlyPaths, saveChanged } from '../common/documents';
import { statusButton } from '../common/elements';
import { ask, wordsOf } from '../common/server';
import { ISessionLife } from './life';
import { notStopped, stopCommandLabels, stopDialogLabels, stopQuestion, unsaved } from './words';

/** The command. */
export const STOP = 'data-scientist-portal:stop-session';
/** How long it may take until the hub knows. */
const STOPPING_MILLISECONDS = 60_000;

/** Stops the session from inside. */
export const stop: JupyterFrontEndPlugin<void> = {
  id: 'data-scientist-portal:stop',
  description: 'Stops the session.',
  autoStart: true,
  requires: [IDocumentManager, ISessionLife, ITranslator],
  optional: [IStatusBar, ICommandPalette],
  activate: (
    app: JupyterFrontEnd,
    documents: IDocumentManager,
    life: ISessionLife,
    translator: ITranslator,
    statusBar: IStatusBar | null,
    palette: ICommandPalette | null
  ): void => {
    const texts = translator.load('data_scientist_portal');
    const labels = stopCommandLabels(texts);
    app.commands.addCommand(STOP, {
      label: labels.label,
      caption: labels.caption,
      isEnabled: () => !life.isOver,
      execute: async () => {
        const dialog = stopDialogLabels(texts);
        const answer = await showDialog({
          title: dialog.title,
          body: stopQuestion(readOnlyPaths(app.shell, documents), texts),
          buttons: [Dialog.cancelButton(), Dialog.warnButton({ label: dialog.stop })]
        });
        if (!answer.button.accept) {
          return;
        }
        const failed = await saveChanged(app.shell, documents);
        if (failed.length > 0) {
          Notification.error(unsaved(failed, texts), { autoClose: false });
          return;
        }
        try {
          // Its job ends with the session's server.
          await ask(app.serviceManager.serverSettings, 'api/shutdown', { method: 'POST' });
          await life.check(Date.now() + STOPPING_MILLISECONDS);
        } catch (error) {
          Notification.error(notStopped(wordsOf(error), texts), { autoClose: false });
        }
      }
    });
    palette?.addItem({ command: STOP, category: labels.category });
    const item = new Widget({ node: statusButton(() => void app.commands.execute(STOP)) });
    item.node.textContent = labels.button;
    item.node.title = app.commands.caption(STOP);
    life.over.connect(() => item.hide());
    statusBar?.registerStatusItem('data-scientist-portal:stop', {
      item,
      align: 'right',
      rank: -1,
      // Without it, JupyterLab leaves it out of a narrow window.
      priority: 10,
      isActive: () => true
    });
  }
};
