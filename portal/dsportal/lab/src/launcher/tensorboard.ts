// TensorBoard for a folder: from the file browser and the launcher, and the list of those that run.

import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette, Notification } from '@jupyterlab/apputils';
import { URLExt } from '@jupyterlab/coreutils';
import { IFileBrowserFactory, type FileBrowser } from '@jupyterlab/filebrowser';
import { ILauncher } from '@jupyterlab/launcher';
import { IRunningSessionManagers, type IRunningSessions } from '@jupyterlab/running';
import type { ServerConnection } from '@jupyterlab/services';
import { ITranslator, type TranslationBundle } from '@jupyterlab/translation';
import { CommandToolbarButton, LabIcon } from '@jupyterlab/ui-components';
import { Poll } from '@lumino/polling';

import { RunningKind } from './running_kind';
import {
  addressFor,
  addressNear,
  holdsEvents,
  selectedFolder,
  shown,
  type IBoard
} from './tensorboards';
import {
  openTensorboardFor,
  TENSORBOARD,
  tensorboardBlocked,
  tensorboardFor,
  tensorboardKind,
  tensorboardLabels,
  tensorboardNotStopped
} from './words';
import { addStyle } from '../common/elements';
import { listBoards, lookForEvents, stopBoard } from '../common/server';

const OPEN = 'data-scientist-portal:tensorboard-open';
const BUTTON = 'data-scientist-portal:tensorboard-button';
const CARD = 'data-scientist-portal:tensorboard';
const LIST_MILLISECONDS = 10_000;
/** After which one that was opened is in the list. */
const START_MILLISECONDS = 3_000;
/** So that moving through a list with the arrow keys asks for the last folder only. */
const PAUSE_MILLISECONDS = 150;

// The toolbar has one line at its usual width with this button too. Cloning is in the Git panel and
// in the Git menu.
const STYLE = `
.jp-FileBrowser-toolbar.jp-Toolbar [data-jp-item-name='gitClone'] { display: none; }
.jp-FileBrowser-toolbar.jp-Toolbar .jp-ToolbarButtonComponent[data-command='launcher:create'] {
  width: 36px;
}`;

const icon = new LabIcon({
  name: 'data-scientist-portal:tensorboard',
  svgstr: `<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 32 32">
  <g fill="none" stroke="#ef6c00" stroke-width="3" stroke-linecap="round" stroke-linejoin="round">
    <path d="M4 5v22h24"/>
    <path d="M9 20l5-6 4 3 9-11"/>
  </g>
</svg>`
});

/** TensorBoard, in JupyterLab. */
export const tensorboard: JupyterFrontEndPlugin<void> = {
  id: 'data-scientist-portal:tensorboard',
  description: 'Opens TensorBoard for a folder, and lists those that run.',
  autoStart: true,
  requires: [IFileBrowserFactory, ITranslator],
  optional: [ILauncher, ICommandPalette, IRunningSessionManagers],
  activate: (
    app: JupyterFrontEnd,
    browsers: IFileBrowserFactory,
    translator: ITranslator,
    launcher: ILauncher | null,
    palette: ICommandPalette | null,
    running: IRunningSessionManagers | null
  ): void => {
    const texts = translator.load('data_scientist_portal');
    const labels = tensorboardLabels(texts);
    const settings = app.serviceManager.serverSettings;
    const boards = new Boards(settings, texts);
    const choice = new Choice(settings, () => app.commands.notifyCommandChanged(BUTTON));
    app.commands.addCommand(OPEN, {
      label: labels.open,
      caption: labels.openCaption,
      icon,
      isVisible: () => inContext(browsers) !== null,
      describedBy: { args: { type: 'object', properties: {} } },
      execute: () => boards.open(addressFor(inContext(browsers) ?? ''))
    });
    app.commands.addCommand(BUTTON, {
      label: '',
      caption: () =>
        choice.folder === null ? labels.noFolder : openTensorboardFor(shown(choice.folder), texts),
      icon,
      // Not hidden: the list would jump under the mouse whenever a folder is selected.
      isEnabled: () => choice.folder !== null,
      describedBy: { args: { type: 'object', properties: {} } },
      execute: () => boards.open(addressFor(choice.folder ?? ''))
    });
    app.commands.addCommand(CARD, {
      label: args => (args.isPalette ? labels.openCurrent : TENSORBOARD),
      caption: labels.openCurrentCaption,
      icon: args => (args.isPalette ? undefined : icon),
      describedBy: {
        args: {
          type: 'object',
          properties: { cwd: { type: 'string', description: labels.folderArgument } }
        }
      },
      execute: args =>
        boards.open(
          addressNear(
            typeof args.cwd === 'string'
              ? args.cwd
              : (browsers.tracker.currentWidget?.model.path ?? '')
          )
        )
    });
    // On the empty part of the list, it is about the folder that is open.
    app.contextMenu.addItem({ command: OPEN, selector: '.jp-DirListing-content', rank: 2.5 });
    launcher?.add({ command: CARD, category: 'Other', rank: 0.5 });
    palette?.addItem({
      command: CARD,
      category: labels.category,
      args: { isPalette: true }
    });
    running?.add(boards);
    addStyle(STYLE);
    const watch = (browser: FileBrowser): void => {
      const button = new CommandToolbarButton({ commands: app.commands, id: BUTTON });
      browser.toolbar.addItem('tensorboard', button);
      choice.watch(browser);
    };
    browsers.tracker.forEach(watch);
    browsers.tracker.widgetAdded.connect((_, browser) => watch(browser));
  }
};

/** The folder that a context menu is about; `null`: it is about something else. */
function inContext(browsers: IFileBrowserFactory): string | null {
  const browser = browsers.tracker.currentWidget;
  const selected = [...(browser?.selectedItems() ?? [])];
  return selected.length === 0 ? (browser?.model.path ?? null) : selectedFolder(selected);
}

/** Which folder of a file browser has something to show. */
class Choice {
  constructor(
    private _settings: ServerConnection.ISettings,
    private _changed: () => void
  ) {}

  /** `null`: none, as far as is known. */
  get folder(): string | null {
    return this._folder;
  }

  watch(browser: FileBrowser): void {
    const look = (): void => void this._look(browser);
    browser.selectionChanged.connect(look);
    browser.model.refreshed.connect(() => {
      // What is selected was looked at when it was.
      if (selectedFolder([...browser.selectedItems()]) === null) {
        look();
      }
    });
  }

  private async _look(browser: FileBrowser): Promise<void> {
    const number = ++this._looks;
    const selected = selectedFolder([...browser.selectedItems()]);
    if (selected === null) {
      this._take(holdsEvents(browser.model.items()) ? browser.model.path : null);
      return;
    }
    if (selected === this._folder) {
      return;
    }
    this._take(null);
    await new Promise(resolve => setTimeout(resolve, PAUSE_MILLISECONDS));
    if (number !== this._looks) {
      return;
    }
    // A folder that cannot be looked at has no button; its context menu says why.
    const found = await lookForEvents(this._settings, selected).catch(() => null);
    if (number === this._looks && found?.has_events) {
      this._take(selected);
    }
  }

  private _take(folder: string | null): void {
    if (folder !== this._folder) {
      this._folder = folder;
      this._changed();
    }
  }

  private _folder: string | null = null;
  private _looks = 0;
}

/** Opens TensorBoards in tabs of the browser, and lists those that run. */
class Boards extends RunningKind implements IRunningSessions.IManager {
  constructor(
    private _settings: ServerConnection.ISettings,
    private _texts: TranslationBundle
  ) {
    const kind = tensorboardKind(_texts);
    super(_texts, kind.name, kind.stopAllQuestion);
    this._poll = new Poll({
      name: 'data-scientist-portal:tensorboards',
      factory: () => this._read(),
      frequency: { interval: LIST_MILLISECONDS, backoff: true },
      standby: 'when-hidden'
    });
  }

  /** Show an address of TensorBoard's in the tab that it has already, or in a new one. */
  open(address: string): void {
    const url = URLExt.join(this._settings.baseUrl, address);
    const known = this._tabs.get(address);
    if (known && this._isShownIn(known, address)) {
      known.focus();
      return;
    }
    // At once: after a pause for a question to the server, browsers take it for a pop-up. By its
    // name the tab is found again when this page has been loaded anew.
    const tab = window.open(url, `tensorboard ${url}`);
    if (tab) {
      tab.focus();
      this._tabs.set(address, tab);
      setTimeout(() => this.refreshRunning(), START_MILLISECONDS);
    } else {
      Notification.warning(tensorboardBlocked(this._texts));
    }
  }

  /** Whether a tab has the page of a TensorBoard that runs. */
  private _isShownIn(tab: Window, address: string): boolean {
    const board = this._boards.find(board => addressFor(board.folder) === address);
    try {
      return !tab.closed && !!board && tab.location.pathname === board.address;
    } catch {
      // Somebody has gone to another site in it.
      return false;
    }
  }

  running(): IRunningSessions.IRunningItem[] {
    return this._boards.map(board => ({
      icon: () => icon,
      label: () => shown(board.folder),
      labelTitle: () => tensorboardFor(board.place, this._texts),
      open: () => this.open(addressFor(board.folder)),
      shutdown: () => void this._stop([board])
    }));
  }

  refreshRunning(): void {
    void this._poll.refresh();
  }

  shutdownAll(): void {
    void this._stop(this._boards);
  }

  private async _stop(boards: IBoard[]): Promise<void> {
    for (const board of boards) {
      // Its page would be a dead one.
      this._tabs.get(addressFor(board.folder))?.close();
      await stopBoard(this._settings, board.id).catch((error: Error) =>
        Notification.error(tensorboardNotStopped(error.message, this._texts))
      );
    }
    await this._poll.refresh();
  }

  private async _read(): Promise<void> {
    const { boards } = await listBoards(this._settings);
    if (String(boards.map(board => board.id)) !== String(this._boards.map(board => board.id))) {
      this._boards = boards;
      this.runningChanged.emit();
    }
  }

  private _boards: IBoard[] = [];
  private _tabs = new Map<string, Window>();
  private _poll: Poll;
}
