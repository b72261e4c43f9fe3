// What is said of a table.

import type { ITexts } from '../common/time';

/** The document's kind, and the buttons. */
export function tableLabels(texts: ITexts) {
  return {
    fileType: texts.__('Parquet'),
    factory: texts.__('Table'),
    first: texts.__('First Rows'),
    previous: texts.__('Previous'),
    next: texts.__('Next'),
    row: texts.__('Row'),
    reading: texts.__('Reading…'),
    again: texts.__('Try Again')
  };
}

/** Say which rows are in sight; numbers from 0, the last one not included. */
export function range(first: number, end: number, all: number, texts: ITexts): string {
  if (all === 0) {
    return texts.__('No rows');
  }
  const [from, to, of] = [first + 1, end, all].map(number => number.toLocaleString());
  return texts.__('Rows %1 to %2 of %3', from, to, of);
}

/** Say that there are more columns than are shown. */
export function columnsShown(shown: number, all: number, texts: ITexts): string {
  return texts.__('The first %1 of %2 columns', shown.toLocaleString(), all.toLocaleString());
}
