// Templates: opened as the user's own copy, from the launcher, the file browser and the notebook.

import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { Dialog, ICommandPalette, Notification } from '@jupyterlab/apputils';
import type { DocumentRegistry, IDocumentWidget } from '@jupyterlab/docregistry';
import { IFileBrowserFactory } from '@jupyterlab/filebrowser';
import { ILauncher } from '@jupyterlab/launcher';
import type { ServerConnection } from '@jupyterlab/services';
import { ITranslator, type TranslationBundle } from '@jupyterlab/translation';
import { copyIcon, notebookIcon, ToolbarButton } from '@jupyterlab/ui-components';

import { addStyle } from '../common/elements';
import { TemplateChoice, TemplateDialog } from './template_dialog';
import type { ITemplate } from './template_list';
import { copied, notCopied, notListed, templateDialogLabels, templateLabels } from './words';
import { copyTemplate, readTemplates, wordsOf } from '../common/server';

const NEW = 'data-scientist-portal:new-from-template';
const COPY = 'data-scientist-portal:copy-template';

/** The way out of what cannot be saved must be seen. */
const COPY_STYLE = `
.portal-copy-template::part(control) {
  background: var(--jp-accept-color-normal, var(--jp-brand-color1)); color: white;
  border-radius: 4px; padding: 0 8px;
}
.portal-copy-template::part(control):hover { background: var(--jp-accept-color-hover, var(--jp-brand-color0)); }
.portal-copy-template .jp-ToolbarButtonComponent-label { color: white; font-weight: 600; }
.portal-copy-template svg path { fill: white; }
`;

// Among the kernels, the launcher shows pictures only.
const PICTURE = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24">
  <g fill="none" stroke="#f37626" stroke-width="1.5">
    <path d="M8 3h8l4 4v10H8zM16 3v4h4M5 7v14h11M14 9.5v5M11.5 12h5"/>
  </g>
</svg>`;

/** Templates, in JupyterLab. */
export const templates: JupyterFrontEndPlugin<void> = {
  id: 'data-scientist-portal:templates',
  description: "Opens a template as the user's own copy.",
  autoStart: true,
  requires: [IFileBrowserFactory, ITranslator],
  optional: [ILauncher, ICommandPalette],
  activate: (
    app: JupyterFrontEnd,
    browsers: IFileBrowserFactory,
    translator: ITranslator,
    launcher: ILauncher | null,
    palette: ICommandPalette | null
  ): void => {
    const texts = translator.load('data_scientist_portal');
    const labels = templateLabels(texts);
    const copies = new Copies(app, browsers, texts);
    app.commands.addCommand(NEW, {
      label: args => (args.isPalette ? labels.createInPalette : labels.create),
      caption: labels.createCaption,
      // The launcher takes it for all notebooks.
      icon: args => (args.isPalette ? undefined : notebookIcon),
      describedBy: {
        args: {
          type: 'object',
          properties: { cwd: { type: 'string', description: labels.folderArgument } }
        }
      },
      execute: args => copies.choose(typeof args.cwd === 'string' ? args.cwd : '')
    });
    app.commands.addCommand(COPY, {
      label: labels.copy,
      caption: labels.copyCaption,
      icon: copyIcon,
      isVisible: () => copies.selected().length > 0,
      describedBy: { args: { type: 'object', properties: {} } },
      execute: async () => {
        for (const path of copies.selected()) {
          await copies.open(path, '');
        }
      }
    });
    app.contextMenu.addItem({
      command: COPY,
      selector: '.jp-DirListing-item[data-isdir="false"]',
      rank: 0
    });
    launcher?.add({
      command: NEW,
      category: 'Notebook',
      rank: 0,
      kernelIconUrl: `data:image/svg+xml,${encodeURIComponent(PICTURE)}`
    });
    palette?.addItem({
      command: NEW,
      category: labels.category,
      args: { isPalette: true }
    });
    app.docRegistry.addWidgetExtension('Notebook', {
      createNew: (panel: IDocumentWidget, context: DocumentRegistry.Context) =>
        void copies.addButton(panel, context)
    });
  }
};

/** Makes copies of templates. */
class Copies {
  constructor(
    private _app: JupyterFrontEnd,
    private _browsers: IFileBrowserFactory,
    private _texts: TranslationBundle
  ) {
    this._settings = _app.serviceManager.serverSettings;
    this._found = this._list().catch(error => console.warn('The templates are not known:', error));
  }

  /** The paths of the templates that are selected in the file browser. */
  selected(): string[] {
    const browser = this._browsers.tracker.currentWidget;
    return [...(browser?.selectedItems() ?? [])]
      .filter(item => item.type !== 'directory' && this.isTemplate(item.path))
      .map(item => item.path);
  }

  isTemplate(path: string): boolean {
    return this._link !== '' && path.startsWith(`${this._link}/`);
  }

  /** Let the user choose a template; open a copy of it in a folder. */
  async choose(folder: string): Promise<void> {
    const labels = templateDialogLabels(this._texts);
    let listed: ITemplate[];
    try {
      listed = await this._list();
    } catch (error) {
      // The welcome's button and the palette say nothing of it.
      Notification.error(notListed(wordsOf(error), this._texts), { autoClose: false });
      return;
    }
    const choice = new TemplateChoice(listed, this._texts);
    const answer = await new TemplateDialog(choice, {
      title: labels.title,
      buttons: [
        Dialog.cancelButton(),
        Dialog.okButton({ label: labels.create, caption: labels.createCaption })
      ],
      focusNodeSelector: 'input[type="search"]'
    }).launch();
    if (answer.button.accept && answer.value) {
      await this.open(answer.value, folder);
    }
  }

  /** Copy a template into a folder, or the home where that cannot be written, and open the copy. */
  async open(path: string, folder: string): Promise<void> {
    try {
      const copy = await copyTemplate(this._settings, path, folder);
      await this._app.commands.execute('docmanager:open', { path: copy.path });
      Notification.success(copied(copy, this._texts), {
        autoClose: 10_000
      });
    } catch (error) {
      const words = wordsOf(error);
      Notification.error(notCopied(path, words, this._texts), {
        autoClose: false
      });
    }
  }

  /** Offer a copy in the toolbar of a template, which cannot be saved. */
  async addButton(panel: IDocumentWidget, context: DocumentRegistry.Context): Promise<void> {
    await this._found;
    await context.ready;
    if (!this.isTemplate(context.path) || panel.isDisposed) {
      return;
    }
    addStyle(COPY_STYLE);
    const labels = templateLabels(this._texts);
    const button = new ToolbarButton({
      className: 'portal-copy-template',
      label: labels.copy,
      tooltip: labels.copyTooltip,
      onClick: () => void this.open(context.path, '')
    });
    panel.toolbar.insertItem(0, 'copy-template', button);
  }

  private async _list(): Promise<ITemplate[]> {
    const found = await readTemplates(this._settings);
    this._link = found.link;
    return found.templates;
  }

  private _settings: ServerConnection.ISettings;
  private _found: Promise<unknown>;
  private _link = '';
}
