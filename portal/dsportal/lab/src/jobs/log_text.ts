// The text of a log that grows: complete lines, and the one that is being written.

// What moves the cursor and sets colours (ECMA-48), titles of windows, and alphabets (ECMA-35), which
// `tput sgr0` sets.
const CONTROLS =
  /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[ -/]+[0-~]|[0-Z\\^_])/g;

/** How many letters of a log are kept. */
export const MOST_LETTERS = 64 * 32_768;

/** Whether so much is still to be read that nothing of what is there would be kept; in bytes. */
export function isLeftBehind(piece: { next: number; size: number }): boolean {
  // A letter is four bytes at most.
  return piece.size - piece.next > 4 * MOST_LETTERS;
}

/** Takes pieces as they come, in any cut. */
export class LogText {
  /** Add a piece; return the lines that are complete now, with their ends, and the open one. */
  add(piece: string): { done: string; open: string } {
    const text = this._open + piece;
    const end = text.lastIndexOf('\n') + 1;
    this._open = newest(text.slice(end)).slice(-MOST_LETTERS);
    return { done: plain(text.slice(0, end)), open: plain(this._open) };
  }

  private _open = '';
}

/** Write lines as a terminal would show them in the end, without colours. */
export function plain(text: string): string {
  return text
    .split('\n')
    .map(line => overwritten(line.replace(CONTROLS, '')))
    .join('\n');
}

/** A progress bar goes back to the line's beginning and writes anew: what came last counts. */
function overwritten(line: string): string {
  const written = line.split('\r').filter(Boolean);
  return written[written.length - 1] ?? '';
}

/** Forget what is overwritten of a line that may never end. */
function newest(line: string): string {
  const last = line.lastIndexOf('\r', line.length - 2);
  return last < 0 ? line : line.slice(last);
}

/** Where a text is, in lines of small letters: the positions of all matches. */
export function matchPositions(text: string, sought: string): number[] {
  const found: number[] = [];
  const [where, what] = [text.toLowerCase(), sought.toLowerCase()];
  for (let at = what ? where.indexOf(what) : -1; at >= 0; at = where.indexOf(what, at + 1)) {
    found.push(at);
  }
  return found;
}

/** In which of several texts a match is, and where in it; `found`: the positions in each of them. */
export function matchAt(found: readonly number[][], match: number): [number, number] {
  let text = 0;
  while (match >= found[text]!.length) {
    match -= found[text]!.length;
    text += 1;
  }
  return [text, found[text]![match]!];
}

/** Give the end of a log in at most so many letters, in whole lines where that is possible. */
export function lastLines(text: string, letters: number): string {
  const lines = plain(text)
    .split('\n')
    .map(line => line.trim())
    .filter(Boolean);
  let found = lines.pop() ?? '';
  for (const line of lines.reverse()) {
    if (found.length + line.length + 1 > letters) {
      break;
    }
    found = `${line}\n${found}`;
  }
  return found.length > letters ? `${found.slice(0, letters - 1)}…` : found;
}
