// Closing JupyterLab for the day: the GPUs stay reserved, which is said once in a session.
//
// A browser lets a page ask whether it is really to be closed, with words of the browser's own. Whoever
// stays is told what about, and can stop the session there.

import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { Dialog, showDialog } from '@jupyterlab/apputils';
import { PageConfig } from '@jupyterlab/coreutils';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ITranslator } from '@jupyterlab/translation';

import { read } from '../common/server';
import { ISessionLife } from './life';
import { STOP } from './stop';
import { keepLabel, leaving, leavingDialogLabels, stopCommandLabels } from './words';

const PLUGIN = 'data-scientist-portal:leave';
const ASK = 'ask';
const KEY = 'data-scientist-portal:leave-asked';
/** A page that is loaded again is left soon after the key. */
const RELOAD_MILLISECONDS = 1_000;
/** After the browser's own question: a page that is left is gone by then. */
const STAYED_MILLISECONDS = 300;

/** The reminder. */
export const leave: JupyterFrontEndPlugin<void> = {
  id: PLUGIN,
  description: 'Reminds the user of reserved GPUs when the tab is closed.',
  autoStart: true,
  requires: [ISessionLife, ISettingRegistry, ITranslator],
  activate: async (
    app: JupyterFrontEnd,
    life: ISessionLife,
    registry: ISettingRegistry,
    translator: ITranslator
  ): Promise<void> => {
    const texts = translator.load('data_scientist_portal');
    const settings = await registry.load(PLUGIN);
    const job = PageConfig.getOption('portalJob');
    let gpus = 0;
    // Not awaited: JupyterLab waits for this function.
    void app.restored.then(async () => {
      gpus = (await read(app.serviceManager.serverSettings)).gpus;
    });
    const tell = async (): Promise<void> => {
      const { deadline } = await read(app.serviceManager.serverSettings);
      const labels = leavingDialogLabels(texts);
      const answer = await showDialog({
        title: labels.title,
        body: leaving(gpus, deadline, texts),
        buttons: [
          Dialog.cancelButton({ label: keepLabel(texts) }),
          Dialog.warnButton({ label: stopCommandLabels(texts).label })
        ],
        defaultButton: 0,
        checkbox: { label: labels.dismiss }
      });
      if (answer.isChecked) {
        await settings.set(ASK, false);
      }
      if (answer.button.accept) {
        await app.commands.execute(STOP);
      }
    };
    let reloads = 0;
    window.addEventListener('keydown', event => {
      reloads = isReload(event) ? Date.now() : reloads;
    });
    window.addEventListener('beforeunload', event => {
      const isAsked = localStorage.getItem(KEY) === job;
      const isReloaded = Date.now() - reloads < RELOAD_MILLISECONDS;
      const isWanted = gpus > 0 && settings.get(ASK).composite === true && !life.isOver;
      if (!isWanted || isAsked || isReloaded) {
        return;
      }
      localStorage.setItem(KEY, job);
      event.preventDefault();
      setTimeout(() => void tell(), STAYED_MILLISECONDS);
    });
  }
};

/** Whether a key loads the page again. */
export function isReload(event: Pick<KeyboardEvent, 'key' | 'ctrlKey' | 'metaKey'>): boolean {
  return (
    event.key === 'F5' || (event.key.toLowerCase() === 'r' && (event.ctrlKey || event.metaKey))
  );
}
