// The portal's own documentation, in the Help menu: the hub has it, so no other site is asked.

import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { PageConfig, URLExt } from '@jupyterlab/coreutils';
import { ITranslator } from '@jupyterlab/translation';

import { readLook } from './look';
import { documentationLabels } from './words';

const OPEN = 'data-scientist-portal:documentation';

/** The documentation, in JupyterLab. */
export const documentation: JupyterFrontEndPlugin<void> = {
  id: 'data-scientist-portal:documentation',
  description: "Opens the portal's documentation.",
  autoStart: true,
  requires: [ITranslator],
  optional: [ICommandPalette],
  activate: (
    app: JupyterFrontEnd,
    translator: ITranslator,
    palette: ICommandPalette | null
  ): void => {
    const labels = documentationLabels(translator.load('data_scientist_portal'));
    const place = readLook().documentation;
    const hub = PageConfig.getOption('hubPrefix');
    const address = PageConfig.getOption('hubHost') + URLExt.join(hub, place ?? '', 'index.html');
    app.commands.addCommand(OPEN, {
      label: labels.label,
      caption: labels.caption,
      isVisible: () => Boolean(place && hub),
      describedBy: { args: { type: 'object', properties: {} } },
      execute: () => void window.open(address, '_blank', 'noopener')
    });
    if (place && hub) {
      palette?.addItem({ command: OPEN, category: labels.category });
    }
  }
};
