// A kind of thing in JupyterLab's panel of what runs.

import type { TranslationBundle } from '@jupyterlab/translation';
import { Signal } from '@lumino/signaling';

/** How the panel calls a kind of thing, and how it is stopped. */
export class RunningKind {
  constructor(
    texts: TranslationBundle,
    readonly name: string,
    readonly shutdownAllConfirmationText: string
  ) {
    this.shutdownLabel = texts.__('Stop');
    this.shutdownAllLabel = texts.__('Stop All');
  }

  readonly shutdownLabel: string;
  readonly shutdownAllLabel: string;
  readonly runningChanged = new Signal<this, void>(this);
}
