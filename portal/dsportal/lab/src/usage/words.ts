// What "My GPUs" says of what the session used, and its word in the status bar.

import { bytes } from '../common/bytes';
import type { ITexts } from '../common/time';
import { HOUR_SECONDS, UNUSED_SECONDS, type IGpu, type ISessionUse } from './data';

/** What is written for a figure that is not known. */
const NOT_KNOWN = '–';

/** What the command says; `caption` is the status bar's too. */
export function usageCommandLabels(texts: ITexts) {
  return {
    label: texts.__('My GPUs'),
    caption: texts.__('Show what the session has used in the last hour'),
    category: texts.__('Session')
  };
}

/** What the panel says whatever was used. */
export function usagePanelLabels(texts: ITexts) {
  return {
    title: texts.__('My GPUs'),
    subtitle: texts.__('the last hour'),
    table: texts.__('As a table'),
    /** The right end of a chart. */
    end: texts.__('now')
  };
}

/** What heads the columns of the table. */
export function columnLabels(texts: ITexts) {
  return {
    now: texts.__('Now'),
    mean: texts.__('Mean'),
    peak: texts.__('Peak')
  };
}

/** What the figures of a GPU and of the session are called. */
export function figureLabels(texts: ITexts) {
  return {
    session: texts.__('This session'),
    gpuUse: texts.__('In use'),
    memory: texts.__('Memory'),
    cpu: texts.__('CPU'),
    read: texts.__('Read from files'),
    written: texts.__('Written to files')
  };
}

/** Name a GPU. */
export function gpuTitle(at: number, texts: ITexts): string {
  return texts.__('GPU %1', at);
}

/** Say of which kind a GPU is, how hot, and how much power it draws, as far as that is known. */
export function gpuDetail(
  name: string | null,
  degrees: number | null | undefined,
  watts: number | null | undefined,
  texts: ITexts
): string {
  const parts = [
    name,
    degrees == null ? null : texts.__('%1 °C', degrees),
    watts == null ? null : texts.__('%1 W', watts)
  ];
  return parts.filter(part => part).join(' · ');
}

/** Name a row of the table; `held`: how much of it the session holds. */
export function rowLabel(label: string, held: string | null, texts: ITexts): string {
  return held === null ? label : texts.__('%1 (of %2)', label, held);
}

/** Say where a chart begins. */
export function chartBegin(seconds: number, texts: ITexts): string {
  return texts.__('%1 min ago', Math.round(seconds / 60));
}

/** Say what a line of a chart shows. */
export function lineWords(
  title: string,
  label: string,
  now: string,
  highest: string,
  texts: ITexts
): string {
  return texts.__('%1, %2: now %3; highest in the last hour %4', title, label, now, highest);
}

/** Write a number for people: `0`, `0.04`, `9.6`, `34`. */
export function number(value: number): string {
  if (value < 0.995) {
    return String(Math.round(value * 100) / 100);
  }
  return String(value < 9.95 ? Math.round(value * 10) / 10 : Math.round(value));
}

/** Write how much of a GPU's time it was in use. */
export function percent(value: number | null, texts: ITexts): string {
  return value === null ? NOT_KNOWN : texts.__('%1 %', Math.round(value));
}

/** Write bytes a second. */
export function rate(value: number | null, texts: ITexts): string {
  return value === null ? NOT_KNOWN : texts.__('%1/s', bytes(value));
}

/** Write how much of what is held is used; `–` where it is not known. */
export function usedOfHeld(
  used: number | null,
  held: number | null,
  write: (value: number) => string,
  texts: ITexts
): string {
  if (used === null) {
    return NOT_KNOWN;
  }
  return held === null ? write(used) : texts.__('%1 of %2', write(used), write(held));
}

/** Write a number of cores. */
export function cores(value: number | null, held: number | null, texts: ITexts): string {
  const words = usedOfHeld(value, held, number, texts);
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
export function missing(use: ISessionUse, texts: ITexts): string | null {
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

/** Say that the figures are not of now. */
export function outdated(texts: ITexts): string {
  return texts.__('The session is not responding. These figures are out of date.');
}

/** Say in a few words what the status bar shows. */
export function glance(use: ISessionUse, texts: ITexts): string {
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
