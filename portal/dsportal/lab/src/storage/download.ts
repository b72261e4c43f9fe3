// A folder as a ZIP file, from the file browser: portal/dsportal/session/files/folder_download.py.

import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { URLExt } from '@jupyterlab/coreutils';
import { IFileBrowserFactory } from '@jupyterlab/filebrowser';
import { ITranslator } from '@jupyterlab/translation';
import { downloadIcon } from '@jupyterlab/ui-components';

import { downloadLabels } from './words';

const DOWNLOAD = 'data-scientist-portal:download-folder';

/** The download of folders, in JupyterLab, which itself downloads files only. */
export const download: JupyterFrontEndPlugin<void> = {
  id: 'data-scientist-portal:download-folder',
  description: 'Downloads a folder as a ZIP file.',
  autoStart: true,
  requires: [IFileBrowserFactory, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    browsers: IFileBrowserFactory,
    translator: ITranslator
  ): void => {
    const labels = downloadLabels(translator.load('data_scientist_portal'));
    const { contents, serverSettings } = app.serviceManager;
    const selected = (): string[] =>
      [...(browsers.tracker.currentWidget?.selectedItems() ?? [])]
        .filter(item => item.type === 'directory')
        .map(item => contents.localPath(item.path));
    app.commands.addCommand(DOWNLOAD, {
      label: labels.label,
      caption: labels.caption,
      icon: downloadIcon,
      isVisible: () => selected().length === 1,
      describedBy: { args: { type: 'object', properties: {} } },
      execute: () => {
        const [path] = selected();
        if (path === undefined) {
          return;
        }
        // The browser's own download: it shows how far it is, and where it is kept.
        const link = document.createElement('a');
        link.href = URLExt.join(serverSettings.baseUrl, 'portal/folders', URLExt.encodeParts(path));
        link.download = '';
        document.body.append(link);
        link.click();
        link.remove();
      }
    });
    app.contextMenu.addItem({
      command: DOWNLOAD,
      selector: '.jp-DirListing-item[data-isdir="true"]',
      rank: 9
    });
  }
};
