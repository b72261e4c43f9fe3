// Share: a notebook for others to read, from the file browser and the palette.

import { JupyterFrontEnd, type JupyterFrontEndPlugin } from '@jupyterlab/application';
import { Dialog, ICommandPalette } from '@jupyterlab/apputils';
import { PageConfig, PathExt, URLExt } from '@jupyterlab/coreutils';
import { IDocumentManager } from '@jupyterlab/docmanager';
import { IFileBrowserFactory } from '@jupyterlab/filebrowser';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ITranslator } from '@jupyterlab/translation';
import { LabIcon } from '@jupyterlab/ui-components';

import { addStyle } from '../common/elements';
import { SHARE_STYLE, ShareDialog, ShareView } from './view';
import { dialogLabels, dialogTitle, shareCommandLabels } from './words';

const SHARE = 'data-scientist-portal:share';

const icon = new LabIcon({
  name: 'data-scientist-portal:share',
  svgstr: `<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 24 24">
  <g class="jp-icon3" fill="none" stroke="#616161" stroke-width="1.8" stroke-linecap="round" stroke-linejoin="round">
    <path d="M5 12v8h14v-8M12 15V4M8 8l4-4 4 4"/>
  </g>
</svg>`
});

/** Sharing, in JupyterLab; not there where the site has it off. */
export const sharing: JupyterFrontEndPlugin<void> = {
  id: 'data-scientist-portal:share',
  description: 'Shares a notebook with others of the cluster, read-only.',
  autoStart: true,
  requires: [
    IFileBrowserFactory,
    INotebookTracker,
    IDocumentManager,
    JupyterFrontEnd.IPaths,
    ITranslator
  ],
  optional: [ICommandPalette],
  activate: (
    app: JupyterFrontEnd,
    browsers: IFileBrowserFactory,
    notebooks: INotebookTracker,
    documents: IDocumentManager,
    paths: JupyterFrontEnd.IPaths,
    translator: ITranslator,
    palette: ICommandPalette | null
  ): void => {
    if (!PageConfig.getOption('portalShares')) {
      return;
    }
    const texts = translator.load('data_scientist_portal');
    const labels = shareCommandLabels(texts);
    const host = paths.urls.hubHost || window.location.origin;
    const hub = `${host}${URLExt.join(paths.urls.hubPrefix ?? '/hub/', 'user-redirect')}/`;
    const selected = (): string[] =>
      [...(browsers.tracker.currentWidget?.selectedItems() ?? [])]
        .filter(item => item.type === 'notebook')
        .map(item => item.path);
    const chosen = (isPalette: boolean): string[] => {
      const open = notebooks.currentWidget?.context.path;
      return isPalette ? (open ? [open] : []) : selected();
    };
    addStyle(SHARE_STYLE);
    app.commands.addCommand(SHARE, {
      label: labels.label,
      caption: labels.caption,
      icon: args => (args.isPalette ? undefined : icon),
      isVisible: args => !!args.isPalette || selected().length === 1,
      isEnabled: args => chosen(!!args.isPalette).length === 1,
      describedBy: { args: { type: 'object', properties: { isPalette: { type: 'boolean' } } } },
      execute: async args => {
        const [path] = chosen(!!args.isPalette);
        if (path === undefined) {
          return;
        }
        const open = documents.findWidget(path);
        const context = open && documents.contextForWidget(open);
        if (context?.model.dirty) {
          await context.save();
        }
        const view = new ShareView(app.serviceManager.serverSettings, texts, path, hub);
        await new ShareDialog(view, {
          title: dialogTitle(PathExt.basename(path), texts),
          buttons: [Dialog.okButton({ label: dialogLabels(texts).close })],
          focusNodeSelector: 'select'
        }).launch();
      }
    });
    app.contextMenu.addItem({
      command: SHARE,
      selector: '.jp-DirListing-item[data-isdir="false"]',
      rank: 13.5
    });
    palette?.addItem({
      command: SHARE,
      category: labels.category,
      args: { isPalette: true }
    });
  }
};
