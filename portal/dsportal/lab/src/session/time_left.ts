// The item of the status bar that says what the session holds, and until when.

import { Widget } from '@lumino/widgets';

import { addStyle, statusButton } from '../common/elements';

/** What a narrow window has no room for. */
const NARROW =
  '@media (max-width: 760px) { .portal-TimeLeft span:first-of-type { display: none } }';

/** A button: a click, or Enter, asks for more time. */
export class TimeLeft extends Widget {
  constructor(onClick: () => void) {
    super({ node: statusButton(onClick) });
    this.addClass('portal-TimeLeft');
    addStyle(NARROW);
    this.node.append(this._facts, this._summary);
  }

  present(facts: string, summary: string, caption: string, isUrgent: boolean): void {
    write(this._facts, facts && summary ? `${facts} · ` : facts);
    write(this._summary, summary);
    this.node.title = caption;
    this.node.style.color = isUrgent ? 'var(--jp-error-color1)' : '';
    this.node.style.fontWeight = isUrgent ? 'bold' : '';
  }

  private _facts = document.createElement('span');
  private _summary = document.createElement('span');
}

function write(node: HTMLElement, text: string): void {
  if (node.textContent !== text) {
    node.textContent = text;
  }
}
