// The user's own environments: a card in the launcher, a command, and the tab that they open.

import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette, MainAreaWidget } from '@jupyterlab/apputils';
import { ILauncher } from '@jupyterlab/launcher';
import { ITranslator } from '@jupyterlab/translation';
import { LabIcon } from '@jupyterlab/ui-components';

import { ENVIRONMENTS_STYLE } from './style';
import { EnvironmentsView } from './view';
import { environmentsCommandLabels } from './words';
import { addStyle } from '../common/elements';

const OPEN = 'data-scientist-portal:environments';

const icon = new LabIcon({
  name: 'data-scientist-portal:environments',
  svgstr: `<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 24 24">
  <g class="jp-icon3" fill="none" stroke="#616161" stroke-width="1.7" stroke-linejoin="round">
    <path d="M12 3l8 4.5v9L12 21l-8-4.5v-9zM4 7.5l8 4.5 8-4.5M12 12v9"/>
  </g>
</svg>`
});

/** The user's own environments, in JupyterLab. */
export const environments: JupyterFrontEndPlugin<void> = {
  id: 'data-scientist-portal:environments',
  description: "Makes, shows and removes the user's own environments.",
  autoStart: true,
  requires: [ITranslator],
  optional: [ILauncher, ICommandPalette],
  activate: (
    app: JupyterFrontEnd,
    translator: ITranslator,
    launcher: ILauncher | null,
    palette: ICommandPalette | null
  ): void => {
    const texts = translator.load('data_scientist_portal');
    const labels = environmentsCommandLabels(texts);
    let tab: MainAreaWidget<EnvironmentsView> | null = null;
    addStyle(ENVIRONMENTS_STYLE);
    app.commands.addCommand(OPEN, {
      label: labels.label,
      caption: labels.caption,
      icon: args => (args.isPalette ? undefined : icon),
      describedBy: { args: { type: 'object', properties: {} } },
      execute: () => {
        if (tab === null || tab.isDisposed) {
          const content = new EnvironmentsView(
            app.serviceManager.serverSettings,
            texts,
            () => void app.serviceManager.kernelspecs.refreshSpecs()
          );
          tab = new MainAreaWidget({ content });
          tab.id = 'portal-environments';
          tab.title.label = labels.label;
          tab.title.icon = icon;
          app.shell.add(tab, 'main');
        }
        app.shell.activateById(tab.id);
      }
    });
    launcher?.add({ command: OPEN, category: 'Other', rank: 0.6 });
    palette?.addItem({ command: OPEN, category: labels.label, args: { isPalette: true } });
  }
};
