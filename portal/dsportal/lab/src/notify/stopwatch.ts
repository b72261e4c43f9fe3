// How long each of several things took that were begun at once, and ran one after another.

/** Takes moments in milliseconds, and gives milliseconds. */
export class Stopwatch<Line extends object, Thing extends object> {
  /** Take note that a thing may run now. */
  begin(thing: Thing, now: number): void {
    this._begun.set(thing, now);
  }

  /** Take note that it ended; return how long it ran, without its wait for others in its line. */
  end(line: Line, thing: Thing, now: number): number {
    const begun = Math.max(this._begun.get(thing) ?? now, this._ended.get(line) ?? 0);
    this._begun.delete(thing);
    this._ended.set(line, now);
    return now - begun;
  }

  private _begun = new WeakMap<Thing, number>();
  private _ended = new WeakMap<Line, number>();
}
