// The dialog's list of times by which a session can be extended.

import type { Dialog } from '@jupyterlab/apputils';
import { Widget } from '@lumino/widgets';

import { element } from '../common/elements';

const LIST = 'data-scientist-portal-extension';

/** A question with a list of answers; JupyterLab's own gives its list no name (4.6). */
export class ExtensionChoice extends Widget implements Dialog.IBodyWidget<number> {
  constructor(question: string, labels: readonly string[], chosen: number) {
    super();
    const label = element('label', '', question);
    label.htmlFor = this._list.id = LIST;
    this._list.append(...labels.map(text => element('option', '', text)));
    this._list.selectedIndex = chosen;
    this.node.append(label, this._list);
  }

  /** Return which of them is chosen. */
  getValue(): number {
    return this._list.selectedIndex;
  }

  private _list = element('select');
}
