// A kind of thing in JupyterLab's panel of what runs.

import { Signal } from '@lumino/signaling';

import type { ITexts } from '../common/time';
import { runningLabels } from './words';

/** How the panel calls a kind of thing, and how it is stopped. */
export class RunningKind {
  constructor(
    texts: ITexts,
    readonly name: string,
    readonly shutdownAllConfirmationText: string
  ) {
    const labels = runningLabels(texts);
    this.shutdownLabel = labels.stop;
    this.shutdownAllLabel = labels.stopAll;
  }

  readonly shutdownLabel: string;
  readonly shutdownAllLabel: string;
  readonly runningChanged = new Signal<this, void>(this);
}
