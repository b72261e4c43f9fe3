// Arithmetic of deadlines. Moments and spans are seconds; no clock is read here.

/** Until then, a day's name tells which one it is. */
const ALMOST_A_WEEK = 6 * 86_400;
const WEEKDAY: Intl.DateTimeFormatOptions = { weekday: 'long' };
const DATE: Intl.DateTimeFormatOptions = { ...WEEKDAY, day: 'numeric', month: 'long' };

/** Plural-aware texts: JupyterLab's `TranslationBundle`, or a stand-in. */
export interface ITexts {
  __(text: string, ...values: unknown[]): string;
  _n(one: string, many: string, count: number, ...values: unknown[]): string;
}

/** Write a span for people: `2 h 05 min`, `12 min`, `under a minute`. */
export function span(seconds: number, texts: ITexts): string {
  const minutes = Math.floor(Math.max(0, seconds) / 60);
  if (minutes === 0) {
    return texts.__('under a minute');
  }
  if (minutes < 60) {
    return texts.__('%1 min', minutes);
  }
  const rest = String(minutes % 60).padStart(2, '0');
  return texts.__('%1 h %2 min', Math.floor(minutes / 60), rest);
}

/** Write a moment for people, in the browser's own way: `14:05`. */
export function hour(moment: number): string {
  return new Date(1000 * moment).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' });
}

/** Write the day of a moment for people, nothing for today's: `Tuesday`, or with its date. */
export function day(moment: number, now: number): string {
  const date = new Date(1000 * moment);
  return date.toDateString() === new Date(1000 * now).toDateString()
    ? ''
    : date.toLocaleDateString([], Math.abs(moment - now) < ALMOST_A_WEEK ? WEEKDAY : DATE);
}

/** Write a moment for people, with its day unless that is today's: `14:05 on Tuesday`. */
export function when(moment: number, now: number, texts: ITexts): string {
  const on = day(moment, now);
  return on ? texts.__('%1 on %2', hour(moment), on) : hour(moment);
}

/** When a session ends because nobody uses it, and how long before that it is warned of. */
interface IUnused {
  /** `null`: it may stay unused. */
  ends_at: number | null;
  warning_seconds: number;
}

const SHORTEST_IDLE_PAUSE = 30;
export const LONGEST_IDLE_PAUSE = 300;

/** Say whether such a session is to be warned of now. */
export function isWarned(use: IUnused, now: number): boolean {
  return untilWarned(use, now) <= 0;
}

/** Say after how many seconds to ask for its use again: the nearer the warning, the sooner. */
export function idlePause(use: IUnused | null, now: number, pageAge: number): number {
  // A young session may not know its limit yet.
  const pause = Math.min(use ? untilWarned(use, now) : 0, pageAge);
  return Math.min(Math.max(pause, SHORTEST_IDLE_PAUSE), LONGEST_IDLE_PAUSE);
}

function untilWarned(use: IUnused, now: number): number {
  return use.ends_at === null ? Infinity : use.ends_at - use.warning_seconds - now;
}

/** Lets something happen once in a while. */
export class Throttle {
  constructor(private _seconds: number) {}

  /** Say whether it is time. */
  isDue(now: number): boolean {
    // A clock that was set back makes it due, too.
    return now < this._last || now - this._last >= this._seconds;
  }

  /** Take note that it happened. */
  done(now: number): void {
    this._last = now;
  }

  /** Let it be time at once. */
  forget(): void {
    this._last = -Infinity;
  }

  private _last = -Infinity;
}

/** Write an amount of minutes for people, `1 h` without the minutes that `span` would show. */
export function amount(minutes: number, texts: ITexts): string {
  return minutes > 0 && minutes % 60 === 0
    ? texts.__('%1 h', minutes / 60)
    : span(60 * minutes, texts);
}

/** Choices of minutes up to a longest one, which is the last of them. */
export function extensionChoices(longest: number): number[] {
  const usual = [30, 60, 120, 240, 480];
  return longest < 1 ? [] : [...usual.filter(minutes => minutes < longest), longest];
}

/**
 * Tells when a mark before the deadline is passed: once for each mark and deadline.
 *
 * When the deadline moves, its marks are new; marks of the new one that are long past are passed
 * at once. Of several marks that are passed together the last one counts.
 */
export class Marks {
  /** `before`: seconds before the deadline, in any order. */
  constructor(before: readonly number[]) {
    this._before = [...before].sort((one, other) => other - one);
  }

  /** Say whether `passed` would return a mark. */
  isDue(deadline: number, now: number): boolean {
    return this._count(deadline, now) > (deadline === this._deadline ? this._done : 0);
  }

  /** Return the newest mark that was passed since the last call, or null. */
  passed(deadline: number, now: number): number | null {
    const count = this._count(deadline, now);
    const mark = this.isDue(deadline, now) ? (this._before[count - 1] ?? null) : null;
    this._done = deadline === this._deadline ? Math.max(this._done, count) : count;
    this._deadline = deadline;
    return mark;
  }

  private _count(deadline: number, now: number): number {
    return this._before.filter(mark => now >= deadline - mark).length;
  }

  private _before: number[];
  private _deadline: number | null = null;
  private _done = 0;
}
