// A job's log in a tab of its own, which goes on as the job writes.

import type { ServerConnection } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Poll } from '@lumino/polling';
import { Widget } from '@lumino/widgets';

import { element } from '../common/elements';
import { button } from './style';
import { readLog, type IPiece } from './server';
import { isLeftBehind, MOST_LETTERS, LogText, matchAt, matchPositions } from './log_text';
import { logFile, logLabels, logState, logTitleOf, matchText, noMatch, notRead } from './words';

const READ_MILLISECONDS = 2_000;
/** Letters in one part of the text, and how many parts are kept. */
const PART = 32_768;
const MOST_PARTS = MOST_LETTERS / PART;

/** Shows what a job writes. */
export class JobLog extends Widget {
  constructor(
    readonly job: string,
    private _settings: ServerConnection.ISettings,
    private _texts: TranslationBundle
  ) {
    super();
    this.addClass('portal-Log');
    this._text.tabIndex = 0;
    this._text.setAttribute('role', 'log');
    // A reader would read every line aloud as it comes.
    this._text.setAttribute('aria-live', 'off');
    this._text.setAttribute('aria-label', logTitleOf(job, _texts));
    this._text.addEventListener('scroll', () => this._scrolled());
    // Without the size, which would be read aloud as it grows.
    this._state.setAttribute('role', 'status');
    const foot = element('div', 'portal-Log-foot');
    foot.append(this._about, this._state);
    this.node.append(this._makeBar(), this._text, foot);
    this._poll = new Poll({
      name: `data-scientist-portal:log-${job}`,
      frequency: { interval: READ_MILLISECONDS, backoff: true, max: 15 * READ_MILLISECONDS },
      standby: () => (this.isVisible ? 'when-hidden' : true),
      factory: () => this._read()
    });
  }

  override dispose(): void {
    this._poll.dispose();
    super.dispose();
  }

  protected override onAfterShow(): void {
    // A job that had ended may have been put back into the queue.
    void this._poll.refresh();
    this._keepAtEnd();
  }

  protected override onActivateRequest(): void {
    this._text.focus();
  }

  private _makeBar(): HTMLElement {
    const labels = logLabels(this._texts);
    const made = element('div', 'portal-Log-bar');
    made.setAttribute('role', 'toolbar');
    made.setAttribute('aria-label', labels.bar);
    this._out = button(labels.output, () => this._choose('out'));
    this._err = button(labels.errors, () => this._choose('err'));
    this._follow = button(labels.follow, () => this._setFollowing(!this._isFollowing));
    this._follow.title = labels.followCaption;
    this._out.hidden = this._err.hidden = true;
    this._sought.type = 'search';
    this._sought.placeholder = labels.find;
    this._sought.setAttribute('aria-label', labels.findLabel);
    this._sought.addEventListener('input', () => this._find(0));
    this._sought.addEventListener('keydown', event => {
      if (event.key === 'Enter') {
        this._find(event.shiftKey ? -1 : 1);
      }
    });
    this._hits.setAttribute('role', 'status');
    const before = button('↑', () => this._find(-1));
    const after = button('↓', () => this._find(1));
    before.setAttribute('aria-label', labels.previous);
    after.setAttribute('aria-label', labels.next);
    made.append(this._out, this._err, this._follow, this._sought, before, after, this._hits);
    this._press();
    return made;
  }

  private async _read(): Promise<void> {
    const stream = this._stream;
    try {
      let piece: IPiece;
      do {
        const [file, offset] = [this._file, this._offset];
        piece = await readLog(this._settings, this.job, stream, file, offset);
        // When the tab is shown again while it is being read, another reading is faster.
        const isLate = stream !== this._stream || file !== this._file || offset !== this._offset;
        if (this.isDisposed || isLate) {
          return;
        }
        this._take(piece);
      } while (piece.next < piece.size && piece.text && !piece.is_new);
    } catch (error) {
      // The file may come yet, or the server be back. What was read before may be the other stream's.
      this._about.textContent = '';
      this._say(notRead(error, this._texts));
      throw error;
    }
  }

  private _take(piece: IPiece): void {
    if (piece.is_new) {
      this._clear();
      this._earlier = piece.start > 0;
    }
    // Far behind, as after a night in a tab that nobody saw, it begins anew near the end.
    this._file = isLeftBehind(piece) ? '' : piece.file;
    this._offset = piece.next;
    this._out.hidden = this._err.hidden = !piece.has_err;
    if (piece.text) {
      const { done, open } = this._lines.add(piece.text);
      this._append(done);
      this._open.textContent = open;
      this._keepAtEnd();
      if (this._sought.value) {
        this._find(0, true);
      }
    }
    const isComplete = piece.is_over === true && piece.next >= piece.size;
    this._present(piece, isComplete);
    if (isComplete) {
      void this._poll.stop();
    }
  }

  private _present(piece: IPiece, isComplete: boolean): void {
    const state = logState(piece, isComplete, this._texts);
    const about = logFile(piece, this._earlier, this._texts);
    this._about.textContent = state ? `${about} · ` : about;
    this._say(state);
  }

  private _say(words: string): void {
    if (this._state.textContent !== words) {
      this._state.textContent = words;
    }
  }

  private _append(text: string): void {
    for (let at = 0; at < text.length;) {
      let part = this._open.previousSibling as HTMLElement | null;
      if (!part || (part.textContent ?? '').length > PART) {
        part = element('div');
        part.append(document.createTextNode(''));
        this._text.insertBefore(part, this._open);
      }
      const cut = text.indexOf('\n', at + PART);
      const end = cut < 0 ? text.length : cut + 1;
      (part.firstChild as Text).appendData(text.slice(at, end));
      at = end;
    }
    while (this._text.childElementCount > MOST_PARTS + 1) {
      this._text.firstElementChild?.remove();
      this._earlier = true;
    }
  }

  private _clear(): void {
    this._lines = new LogText();
    this._open.textContent = '';
    this._text.replaceChildren(this._open);
  }

  private _choose(stream: 'out' | 'err'): void {
    this._stream = stream;
    this._file = '';
    this._offset = 0;
    this._clear();
    this._press();
    void this._poll.refresh();
  }

  // --- the end, or where the reader is ---

  private _scrolled(): void {
    const { scrollTop, scrollHeight, clientHeight } = this._text;
    const isAtEnd = scrollHeight - scrollTop - clientHeight < 24;
    // What was found stays in sight, at the end too.
    this._isFollowing = isAtEnd && (this._isFollowing || !this._sought.value);
    this._press();
  }

  private _setFollowing(isFollowing: boolean): void {
    this._isFollowing = isFollowing;
    this._press();
    this._keepAtEnd();
  }

  private _keepAtEnd(): void {
    if (this._isFollowing) {
      this._text.scrollTop = this._text.scrollHeight;
    }
  }

  private _press(): void {
    this._follow.setAttribute('aria-pressed', String(this._isFollowing));
    this._out.setAttribute('aria-pressed', String(this._stream === 'out'));
    this._err.setAttribute('aria-pressed', String(this._stream === 'err'));
  }

  // --- find ---

  private _find(step: number, isQuiet = false): void {
    const sought = this._sought.value;
    const parts = [...this._text.children].map(part => part.firstChild as Text | null);
    const found = parts.map(text => matchPositions(text?.data ?? '', sought));
    const count = found.reduce((sum, those) => sum + those.length, 0);
    const texts = this._texts;
    CSS.highlights?.delete('portal-found');
    if (count === 0) {
      this._hits.textContent = sought ? noMatch(texts) : '';
      return;
    }
    const from = step === 0 && !isQuiet ? 0 : this._hit + step;
    this._hit = (from + count) % count;
    this._hits.textContent = matchText(this._hit + 1, count, texts);
    const [part, at] = matchAt(found, this._hit);
    const text = parts[part]!;
    // One alone: the browser moves every range along with the text.
    const range = document.createRange();
    range.setStart(text, Math.min(at, text.length));
    range.setEnd(text, Math.min(at + sought.length, text.length));
    CSS.highlights?.set('portal-found', new Highlight(range));
    if (!isQuiet) {
      this._isFollowing = false;
      this._press();
      range.startContainer.parentElement?.scrollIntoView({ block: 'nearest' });
      const top = range.getBoundingClientRect().top - this._text.getBoundingClientRect().top;
      this._text.scrollTop += top - this._text.clientHeight / 2;
    }
  }

  private _poll: Poll;
  private _lines = new LogText();
  private _stream: 'out' | 'err' = 'out';
  private _file = '';
  private _offset = 0;
  private _earlier = false;
  private _isFollowing = true;
  private _hit = 0;
  private _text = element('div', 'portal-Log-text');
  private _open = this._text.appendChild(element('div'));
  private _about = element('span');
  private _state = element('span');
  private _sought = element('input');
  private _hits = element('span');
  private _out!: HTMLButtonElement;
  private _err!: HTMLButtonElement;
  private _follow!: HTMLButtonElement;
}
