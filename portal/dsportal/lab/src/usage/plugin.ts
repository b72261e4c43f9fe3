// What the session uses of its GPUs and of its node: the panel "My GPUs", and a word in the status bar.

import {
  ILayoutRestorer,
  type JupyterFrontEnd,
  type JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import type { ServerConnection } from '@jupyterlab/services';
import { IStatusBar } from '@jupyterlab/statusbar';
import { ITranslator, type TranslationBundle } from '@jupyterlab/translation';
import { LabIcon } from '@jupyterlab/ui-components';
import { Poll } from '@lumino/polling';
import { Widget } from '@lumino/widgets';

import { addStyle } from '../common/elements';
import { readUse } from '../common/server';
import { ISessionLife } from '../session/life';
import { Hour, type ISessionUse } from './data';
import { UsePanel } from './panel';
import { USE_STYLE } from './style';
import { glance, shortHint, usageCommandLabels, usagePanelLabels } from './words';

const SHOW = 'data-scientist-portal:show-use';
/** How often the server is asked while the panel is in sight, and otherwise. */
const SEEN_MILLISECONDS = 10_000;
const UNSEEN_MILLISECONDS = 60_000;

const icon = new LabIcon({
  name: 'data-scientist-portal:use',
  svgstr: `<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 24 24">
  <path class="jp-icon3" fill="#616161" d="M3 4h18v16H3V4zm2 2v12h14V6H5zm1 7h3l2-5 3 8 2-5h3v2h-2
l-3 6-3-7-1 3H6v-2z"/>
</svg>`
});

/** What the session uses, in JupyterLab. */
export const use: JupyterFrontEndPlugin<void> = {
  id: 'data-scientist-portal:use',
  description:
    'Shows how much of its GPUs, cores and memory the session has used in the last hour.',
  autoStart: true,
  requires: [ISessionLife, ITranslator],
  optional: [ICommandPalette, ILayoutRestorer, IStatusBar],
  activate: (
    app: JupyterFrontEnd,
    life: ISessionLife,
    translator: ITranslator,
    palette: ICommandPalette | null,
    restorer: ILayoutRestorer | null,
    statusBar: IStatusBar | null
  ): void => {
    const texts = translator.load('data_scientist_portal');
    const labels = usageCommandLabels(texts);
    addStyle(USE_STYLE);

    const panel = new UsePanel(texts);
    panel.id = 'data-scientist-portal-use';
    panel.title.icon = icon;
    panel.title.caption = usagePanelLabels(texts).title;
    app.shell.add(panel, 'right', { rank: 300 });
    restorer?.add(panel, panel.id);

    const item = new Item(() => void app.commands.execute(SHOW), texts);
    statusBar?.registerStatusItem(panel.id, {
      item,
      align: 'left',
      rank: 100,
      isActive: () => !life.isOver,
      activeStateChanged: life.over
    });
    app.commands.addCommand(SHOW, {
      label: labels.label,
      caption: labels.caption,
      icon,
      describedBy: { args: { type: 'object', properties: {} } },
      execute: () => app.shell.activateById(panel.id)
    });
    palette?.addItem({ command: SHOW, category: labels.category });

    const watch = new Watch(app.serviceManager.serverSettings, life, panel, item);
    void app.restored.then(() => watch.start());
  }
};

/** Asks the server, and lets panel and status bar show what it tells. */
class Watch {
  constructor(
    private _settings: ServerConnection.ISettings,
    private _life: ISessionLife,
    private _panel: UsePanel,
    private _item: Item
  ) {}

  start(): void {
    const poll = new Poll({
      name: 'data-scientist-portal:use',
      frequency: this._frequency(),
      standby: 'when-hidden',
      factory: async () => {
        await this._read();
        poll.frequency = this._frequency();
      }
    });
    this._panel.onSight = () => {
      poll.frequency = this._frequency();
      void poll.refresh();
    };
    document.addEventListener('visibilitychange', () => {
      if (document.visibilityState === 'visible') {
        void poll.refresh();
      }
    });
    this._life.over.connect(() => poll.dispose());
  }

  private _frequency(): { interval: number; backoff: boolean; max: number } {
    // The first sample of a session knows no rates.
    const isYoung = (this._hour.use?.samples.at.length ?? 0) < 2;
    const isSeen = this._panel.isVisible || isYoung;
    const interval = isSeen ? SEEN_MILLISECONDS : UNSEEN_MILLISECONDS;
    return { interval, backoff: true, max: 5 * UNSEEN_MILLISECONDS };
  }

  private async _read(): Promise<void> {
    const since = this._hour.last;
    try {
      this._hour.take(await readUse(this._settings, since), since);
    } catch (error) {
      if (this._hour.use !== null) {
        this._item.presentOutdated();
        this._panel.presentOutdated();
      }
      throw error;
    }
    const known = this._hour.use;
    if (known !== null && known.samples.at.length > 0) {
      this._item.present(known);
      this._panel.present(known);
    }
  }

  private _hour = new Hour();
}

/** A word on the use, as a button in the status bar; it opens the panel. */
class Item extends Widget {
  constructor(
    onClick: () => void,
    private _texts: TranslationBundle
  ) {
    const button = document.createElement('button');
    super({ node: button });
    button.type = 'button';
    button.onclick = onClick;
    button.title = usageCommandLabels(_texts).caption;
    this.addClass('dsp-Use-item');
    this.addClass('jp-StatusBar-TextItem');
    this.addClass('jp-mod-clickable');
  }

  present(known: ISessionUse): void {
    const hint = shortHint(known.gpus.each, this._texts);
    this.node.textContent = hint ?? glance(known, this._texts);
    this.toggleClass('dsp-mod-hint', hint !== null);
  }

  /** Show no figure: the last one is old. */
  presentOutdated(): void {
    this.node.textContent = usageCommandLabels(this._texts).label;
    this.removeClass('dsp-mod-hint');
  }
}
