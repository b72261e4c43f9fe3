// Web tools: a card for each in the launcher, and those that run in the panel of what runs.

import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette, Notification } from '@jupyterlab/apputils';
import { URLExt } from '@jupyterlab/coreutils';
import { ILauncher } from '@jupyterlab/launcher';
import { IRunningSessionManagers, type IRunningSessions } from '@jupyterlab/running';
import type { ServerConnection } from '@jupyterlab/services';
import { ITranslator, type TranslationBundle } from '@jupyterlab/translation';
import { LabIcon } from '@jupyterlab/ui-components';

import { answered } from './answered';
import { RunningKind } from './running_kind';
import {
  openToolLabel,
  toolCaption,
  toolKind,
  toolLabels,
  toolNotStopped,
  toolStarting
} from './words';
import { readTools, stopTool, wordsOf, type ITool } from '../common/server';

const OPEN = 'data-scientist-portal:open-tool';
/** After a tool was opened, its state is asked for until it runs or does not. */
const LOOKS = 30;
const LOOK_MILLISECONDS = 2_000;
/** Between two attempts to learn which tools there are, at most. */
const AWAY_MILLISECONDS = 60_000;

/** Web tools, in JupyterLab. */
export const tools: JupyterFrontEndPlugin<void> = {
  id: 'data-scientist-portal:tools',
  description: 'Opens and stops the web tools of the site.',
  autoStart: true,
  requires: [ITranslator],
  optional: [ILauncher, ICommandPalette, IRunningSessionManagers],
  activate: (
    app: JupyterFrontEnd,
    translator: ITranslator,
    launcher: ILauncher | null,
    palette: ICommandPalette | null,
    running: IRunningSessionManagers | null
  ): void => {
    const texts = translator.load('data_scientist_portal');
    const labels = toolLabels(texts);
    const toolbox = new Toolbox(app.serviceManager.serverSettings, texts);
    const named = (name: unknown): Tool | undefined => toolbox.tools.find(t => t.name === name);
    app.commands.addCommand(OPEN, {
      label: args => named(args.name)?.title ?? labels.open,
      caption: args => toolbox.caption(named(args.name)),
      icon: args => named(args.name)?.icon,
      isVisible: args => named(args.name) !== undefined,
      describedBy: {
        args: {
          type: 'object',
          properties: { name: { type: 'string', description: labels.nameArgument } },
          required: ['name']
        }
      },
      execute: args => toolbox.open(String(args.name))
    });
    const show = async (): Promise<void> => {
      await answered(() => toolbox.refresh(), LOOK_MILLISECONDS, AWAY_MILLISECONDS);
      if (toolbox.tools.length > 0) {
        running?.add(toolbox);
      }
      for (const [rank, { name }] of toolbox.tools.entries()) {
        launcher?.add({ command: OPEN, args: { name }, category: labels.category, rank });
        palette?.addItem({ command: OPEN, args: { name }, category: labels.category });
      }
    };
    // The page comes first.
    void app.restored.then(show);
  }
};

/** A tool, with its picture as JupyterLab draws it. */
class Tool {
  constructor(public given: ITool) {
    // As a picture of its own, so that nothing of it reaches into the page.
    this.icon = new LabIcon({
      name: `data-scientist-portal:tool-${given.name}`,
      svgstr: `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><image href="${given.picture}" width="24" height="24"/></svg>`
    });
  }

  readonly icon: LabIcon;

  get name(): string {
    return this.given.name;
  }

  get title(): string {
    return this.given.title;
  }
}

/** All tools of the session; JupyterLab lists those that run. */
class Toolbox extends RunningKind implements IRunningSessions.IManager {
  constructor(
    private _settings: ServerConnection.ISettings,
    private _texts: TranslationBundle
  ) {
    const kind = toolKind(_texts);
    super(_texts, kind.name, kind.stopAllQuestion);
  }

  tools: Tool[] = [];

  caption(tool: Tool | undefined): string {
    return toolCaption(tool?.title ?? '', tool?.given.is_open_to_node ?? false, this._texts);
  }

  /** Open a tool in a tab of the browser; the session starts it when it is asked for the page. */
  open(name: string): void {
    const url = URLExt.join(this._settings.baseUrl, 'tools', encodeURIComponent(name), '/');
    window.open(url, '_blank', 'noopener');
    void this._follow(name);
  }

  running(): IRunningSessions.IRunningItem[] {
    return this.tools
      .filter(tool => tool.given.state !== 'stopped')
      .map(tool => ({
        icon: () => tool.icon,
        label: () =>
          tool.given.state === 'starting' ? toolStarting(tool.title, this._texts) : tool.title,
        labelTitle: () => openToolLabel(tool.title, this._texts),
        open: () => this.open(tool.name),
        shutdown: () => void this._stop([tool])
      }));
  }

  shutdownAll(): void {
    void this._stop(this.tools);
  }

  refreshRunning(): void {
    void this.refresh();
  }

  /** Ask the session which tools there are, and which run; return whether it answered. */
  async refresh(): Promise<boolean> {
    try {
      const given = (await readTools(this._settings)).tools;
      const known = new Map(this.tools.map(tool => [tool.name, tool]));
      this.tools = given.map(one =>
        Object.assign(known.get(one.name) ?? new Tool(one), { given: one })
      );
      return true;
    } catch (error) {
      console.warn('The tools are not known:', error);
      return false;
    } finally {
      this.runningChanged.emit();
    }
  }

  private async _follow(name: string): Promise<void> {
    for (let look = 0; look < LOOKS; look += 1) {
      await new Promise(resolve => setTimeout(resolve, LOOK_MILLISECONDS));
      await this.refresh();
      if (this.tools.find(tool => tool.name === name)?.given.state !== 'starting') {
        return;
      }
    }
  }

  private async _stop(those: Tool[]): Promise<void> {
    for (const tool of those.filter(one => one.given.state !== 'stopped')) {
      try {
        await stopTool(this._settings, tool.name);
      } catch (error) {
        const words = wordsOf(error);
        Notification.error(toolNotStopped(tool.title, words, this._texts));
      }
    }
    await this.refresh();
  }
}
