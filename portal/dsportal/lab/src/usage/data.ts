// What a session used in the last hour: keeping it, and putting it into words. No page here.

import type { ITexts } from '../common/time';

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
export interface IUse {
  /** The number of the first sample in it. */
  first: number;
  every_seconds: number;
  held: { cores: number | null; memory_bytes: number | null };
  gpus: { state: 'none' | 'no_driver' | 'no_answer' | 'known'; each: IGpu[] };
  samples: ISamples;
}

/** From then on a GPU that is not used is pointed out. */
export const UNUSED_SECONDS = 15 * 60;

const HOUR_SECONDS = 3600;
/** A young session's samples would be a dot in an hour. */
const LEAST_SHOWN_SECONDS = 600;

/** The last hour, as far as the page knows it. */
export class Hour {
  /** The number of the last sample that is here. */
  get last(): number {
    return this._last;
  }

  /** Without samples: `null`. */
  get use(): IUse | null {
    return this._use;
  }

  /** Add what the server told after `last`; another session's server tells all of its own. */
  take(told: IUse): void {
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

  private _use: IUse | null = null;
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

export function summary(column: Column): ISummary {
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

/** Write a number for people: `0`, `0.04`, `9.6`, `34`. */
export function number(value: number): string {
  if (value < 0.995) {
    return String(Math.round(value * 100) / 100);
  }
  return String(value < 9.95 ? Math.round(value * 10) / 10 : Math.round(value));
}

/** Write how much of what is held is used; `–` where it is not known. */
export function share(
  used: number | null,
  held: number | null,
  write: (value: number) => string,
  texts: ITexts
): string {
  if (used === null) {
    return '–';
  }
  return held === null ? write(used) : texts.__('%1 of %2', write(used), write(held));
}

/** Write a number of cores. */
export function cores(value: number | null, held: number | null, texts: ITexts): string {
  const words = share(value, held, number, texts);
  return (held ?? value) === 1 ? texts.__('%1 core', words) : texts.__('%1 cores', words);
}

/** Write a span in full minutes; the server looks back for an hour. */
function minutes(seconds: number, texts: ITexts): string {
  return seconds >= HOUR_SECONDS
    ? texts.__('an hour or more')
    : texts.__('%1 min', Math.floor(seconds / 60));
}

/** Say that a GPU is held for nothing, or return null. */
export function hint(at: number, gpu: IGpu, texts: ITexts): string | null {
  return gpu.unused_seconds < UNUSED_SECONDS
    ? null
    : texts.__('GPU %1 has not been used for %2', at, minutes(gpu.unused_seconds, texts));
}

/** Say the same for all GPUs together, or return null. */
export function shortHint(gpus: readonly IGpu[], texts: ITexts): string | null {
  const unused = gpus.flatMap((gpu, at) => (hint(at, gpu, texts) === null ? [] : [at]));
  if (unused.length < 2) {
    const [at] = unused;
    return at === undefined ? null : hint(at, gpus[at] as IGpu, texts);
  }
  const shortest = Math.min(...unused.map(at => gpus[at]?.unused_seconds ?? 0));
  return texts.__('%1 GPUs have not been used for %2', unused.length, minutes(shortest, texts));
}

/** Say why there are no figures of GPUs, or return null. */
export function missing(use: IUse, texts: ITexts): string | null {
  switch (use.gpus.state) {
    case 'none':
      return texts.__('This session holds no GPU.');
    case 'no_driver':
      return texts.__('GPU use cannot be shown: this node has no NVIDIA driver.');
    case 'no_answer':
      return texts.__(
        'GPU use cannot be shown: this node’s NVIDIA driver is not responding at the moment.'
      );
    case 'known':
      return null;
  }
}

/** Say in a few words what the status bar shows. */
export function glance(use: IUse, texts: ITexts): string {
  const percents = use.samples.gpus.map(gpu => gpu.percent.at(-1) ?? null);
  const known = percents.filter(percent => percent !== null);
  if (known.length === 0) {
    const used = use.samples.cores.at(-1) ?? null;
    return used === null
      ? texts.__('My GPUs')
      : texts.__('CPU: %1', cores(used, use.held.cores, texts));
  }
  const mean = Math.round(known.reduce((sum, percent) => sum + percent, 0) / known.length);
  return percents.length === 1
    ? texts.__('GPU: %1 %', mean)
    : texts.__('%1 GPUs: %2 %', percents.length, mean);
}
