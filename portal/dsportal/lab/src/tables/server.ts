// Rows of a Parquet file, as the session's server reads them: dsportal/session/files/parquet.py.

import { URLExt } from '@jupyterlab/coreutils';
import type { ServerConnection } from '@jupyterlab/services';

import { request } from '../common/server';

/** Some rows; a value is `null` where it is missing. */
export interface IRows {
  columns: { name: string; type: string }[];
  all_columns: number;
  /** The number of the first row, from 0. */
  first: number;
  all_rows: number;
  rows: (string | null)[][];
}

/** Ask for the rows of a file from a number on; fails with the server's words. */
export function readRows(
  settings: ServerConnection.ISettings,
  path: string,
  first: number
): Promise<IRows> {
  return request(settings, `portal/parquet/${URLExt.encodeParts(path)}?first=${first}`, {});
}
