// When a document's kernel is there, or is not going to be.

import type { ISessionContext } from '@jupyterlab/apputils';

/** What is asked of a document's session. */
export type IStarting = Pick<
  ISessionContext,
  | 'initialize'
  | 'isDisposed'
  | 'isReady'
  | 'kernelChanged'
  | 'kernelDisplayStatus'
  | 'session'
  | 'disposed'
  | 'statusChanged'
>;

/** Whether a kernel is on its way. */
export function isStarting(context: IStarting): boolean {
  return (
    !context.isDisposed &&
    !context.session?.kernel &&
    ['initializing', 'starting'].includes(context.kernelDisplayStatus)
  );
}

/** Wait until the kernel is there, has failed to start, or is for the user to choose. */
export async function startEnded(context: IStarting): Promise<void> {
  if (!isStarting(context)) {
    return;
  }
  const changed = nothingStarts(context);
  // Of a first start that fails this says nothing; where the user is to choose, the signals do not.
  await (context.isReady ? changed : Promise.race([changed, context.initialize()]));
}

function nothingStarts(context: IStarting): Promise<void> {
  return new Promise(resolve => {
    const look = (): void => {
      if (!isStarting(context)) {
        context.kernelChanged.disconnect(look);
        context.statusChanged.disconnect(look);
        context.disposed.disconnect(look);
        resolve();
      }
    };
    context.kernelChanged.connect(look);
    context.statusChanged.connect(look);
    context.disposed.connect(look);
  });
}
