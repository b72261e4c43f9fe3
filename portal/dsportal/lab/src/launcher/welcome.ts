// Above the cards of the launcher, until it is dismissed or a notebook is opened: what is where, and
// how to start.

import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette, MainAreaWidget } from '@jupyterlab/apputils';
import { PageConfig } from '@jupyterlab/coreutils';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ITranslator } from '@jupyterlab/translation';
import type { Widget } from '@lumino/widgets';

import { addStyle } from '../common/elements';
import { readLook } from '../look/look';
import { Welcome, type IHomeFolder } from './welcome_view';
import { welcomeLabels } from './words';

const PLUGIN = 'data-scientist-portal:welcome';
const SHOW = 'data-scientist-portal:welcome';
const SHOWN = 'shown';

/** One row of frameworks: consoles are in File ▸ New. */
const LAUNCHER_STYLE = `
.jp-Launcher-section:has(.jp-LauncherCard[data-category="Console"]) { display: none; }
`;

/** The welcome. */
export const welcome: JupyterFrontEndPlugin<void> = {
  id: PLUGIN,
  description: 'Tells first-time users where things are and how to start.',
  autoStart: true,
  requires: [ISettingRegistry, ITranslator],
  optional: [ICommandPalette],
  activate: async (
    app: JupyterFrontEnd,
    registry: ISettingRegistry,
    translator: ITranslator,
    palette: ICommandPalette | null
  ): Promise<void> => {
    const texts = translator.load('data_scientist_portal');
    const labels = welcomeLabels(texts);
    addStyle(LAUNCHER_STYLE);
    const settings = await registry.load(PLUGIN);
    const folders = JSON.parse(PageConfig.getOption('portalFolders') || '[]') as IHomeFolder[];
    const isShown = (): boolean => settings.get(SHOWN).composite === true;
    const make = (): Welcome =>
      new Welcome({
        title: readLook().title,
        folders,
        commands: app.commands,
        texts,
        dismiss: () => void settings.set(SHOWN, false)
      });
    const update = (): void => {
      for (const launcher of launchers(app)) {
        const header = launcher.contentHeader;
        const present = header.widgets.find(widget => widget instanceof Welcome);
        if (!isShown()) {
          present?.dispose();
        } else if (!present) {
          header.addWidget(make());
        }
      }
    };
    app.commands.addCommand(SHOW, {
      label: labels.title,
      caption: labels.caption,
      describedBy: { args: { type: 'object', properties: {} } },
      execute: async () => {
        await settings.set(SHOWN, true);
        const [first] = launchers(app);
        if (first) {
          app.shell.activateById(first.id);
        } else {
          await app.commands.execute('launcher:create');
        }
        update();
      }
    });
    palette?.addItem({ command: SHOW, category: labels.category });
    settings.changed.connect(update);
    // Whoever has opened a notebook knows how to.
    app.docRegistry.addWidgetExtension('Notebook', {
      createNew: () => {
        if (isShown()) {
          void settings.set(SHOWN, false);
        }
      }
    });
    // Not awaited: JupyterLab is restored once its plugins are there.
    void app.restored.then(() => {
      app.shell.currentChanged?.connect(update);
      update();
    });
  }
};

/** The tabs with launchers. */
function launchers(app: JupyterFrontEnd): MainAreaWidget[] {
  return [...app.shell.widgets('main')].filter(isLauncher);
}

function isLauncher(widget: Widget): widget is MainAreaWidget {
  return widget instanceof MainAreaWidget && widget.content.hasClass('jp-Launcher');
}
