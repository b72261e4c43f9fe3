// What a session used in the last hour, as figures. No page here.

/** A figure over time; `null` where it is not known. */
export type Column = (number | null)[];

export interface IGpuSamples {
  percent: Column;
  memory_bytes: Column;
  celsius: Column;
  watts: Column;
}

export interface ISamples {
  /** Seconds since 1970. */
  at: number[];
  cores: Column;
  memory_bytes: Column;
  /** Bytes a second. */
  read_rate: Column;
  write_rate: Column;
  gpus: IGpuSamples[];
}

export interface IGpu {
  name: string | null;
  memory_total_bytes: number | null;
  unused_seconds: number;
}

/** What the server tells: portal/dsportal/session/usage/history.py. */
export interface ISessionUse {
  /** The number of the first sample in it. */
  first: number;
  every_seconds: number;
  held: { cores: number | null; memory_bytes: number | null };
  gpus: { state: 'none' | 'no_driver' | 'no_answer' | 'known'; each: IGpu[] };
  samples: ISamples;
}

/** From then on a GPU that is not used is pointed out. */
export const UNUSED_SECONDS = 15 * 60;

/** What the server and the page look back. */
export const HOUR_SECONDS = 3600;
/** A young session's samples would be a dot in an hour. */
const LEAST_SHOWN_SECONDS = 600;

/** The last hour, as far as the page knows it. */
export class Hour {
  /** The number of the last sample that is here. */
  get last(): number {
    return this._last;
  }

  /** Without samples: `null`. */
  get use(): ISessionUse | null {
    return this._use;
  }

  /**
   * Add what the server told after sample number `since`; another session's server tells all of its
   * own. Where two answers to one question come, the second is not needed any more.
   */
  take(told: ISessionUse, since = this._last): void {
    if (since !== this._last) {
      return;
    }
    const before = this._use;
    const isNext = before !== null && told.first === this._last + 1;
    const isAlike = before?.samples.gpus.length === told.samples.gpus.length;
    if (isNext && !isAlike) {
      // The driver has begun to answer: what is here has no columns for its GPUs.
      this._use = null;
      this._last = 0;
      return;
    }
    const samples = isNext ? joined(before.samples, told.samples) : told.samples;
    this._use = { ...told, samples: recent(samples) };
    this._last = told.first + told.samples.at.length - 1;
  }

  private _use: ISessionUse | null = null;
  private _last = 0;
}

function each(samples: ISamples, change: (column: Column, other: Column) => Column, by: ISamples) {
  const gpu = (one: IGpuSamples, other: IGpuSamples): IGpuSamples => ({
    percent: change(one.percent, other.percent),
    memory_bytes: change(one.memory_bytes, other.memory_bytes),
    celsius: change(one.celsius, other.celsius),
    watts: change(one.watts, other.watts)
  });
  return {
    at: change(samples.at, by.at) as number[],
    cores: change(samples.cores, by.cores),
    memory_bytes: change(samples.memory_bytes, by.memory_bytes),
    read_rate: change(samples.read_rate, by.read_rate),
    write_rate: change(samples.write_rate, by.write_rate),
    gpus: samples.gpus.map((one, at) => gpu(one, by.gpus[at] as IGpuSamples))
  };
}

function joined(samples: ISamples, more: ISamples): ISamples {
  return each(samples, (column, other) => [...column, ...other], more);
}

function recent(samples: ISamples): ISamples {
  const newest = samples.at.at(-1) ?? 0;
  const old = samples.at.filter(at => at < newest - HOUR_SECONDS).length;
  return old === 0 ? samples : each(samples, column => column.slice(old), samples);
}

/** Return how much time a chart shows, so that the samples fill it. */
export function shownSeconds(at: readonly number[]): number {
  const known = (at.at(-1) ?? 0) - (at[0] ?? 0);
  return Math.min(HOUR_SECONDS, Math.max(LEAST_SHOWN_SECONDS, known));
}

/** The figures of a column that a table names. */
export interface ISummary {
  now: number | null;
  average: number | null;
  highest: number | null;
}

export function columnSummary(column: Column): ISummary {
  const known = column.filter(value => value !== null);
  const sum = known.reduce((total, value) => total + value, 0);
  return {
    now: column.at(-1) ?? null,
    average: known.length ? sum / known.length : null,
    highest: known.length ? Math.max(...known) : null
  };
}

/** The end of a scale that holds a column: 1, 2 or 5 times a power of ten, or of 1024. */
export function roundUp(value: number, base = 10): number {
  let unit = 1;
  while (unit * base <= value) {
    unit *= base;
  }
  const tens = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(1, value / unit))));
  return [1, 2, 5, 10].map(step => step * tens * unit).find(end => end >= value) ?? value;
}
