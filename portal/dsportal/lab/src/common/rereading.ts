// What is known from the server, and read again before it is acted on.

/** Reads something, and knows when it last did. */
export class Rereading {
  /** `oldMilliseconds`: after which what was read is no longer acted on. */
  constructor(
    private _ask: () => Promise<void>,
    private _oldMilliseconds: number
  ) {}

  /** Read it; fails as the question does. */
  async read(now: number): Promise<void> {
    this._askedAt = now;
    await this._ask();
  }

  /** Read it again if it is old; return whether an answer to that is awaited. */
  isAwaited(now: number): boolean {
    // After a clock was set back nobody knows how old it is.
    const isOld = now < this._askedAt || now - this._askedAt > this._oldMilliseconds;
    if (!this._isAwaited && isOld) {
      this._isAwaited = true;
      this.read(now)
        // The server cannot be reached: what is known must do.
        .catch(() => undefined)
        .finally(() => {
          this._isAwaited = false;
        });
    }
    return this._isAwaited;
  }

  private _askedAt = 0;
  private _isAwaited = false;
}
