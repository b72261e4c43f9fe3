// The open documents, and what of them would be lost.

import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { IDocumentManager } from '@jupyterlab/docmanager';
import type { DocumentRegistry } from '@jupyterlab/docregistry';

/** Whether something would be lost. */
export function hasChanged(shell: JupyterFrontEnd.IShell, documents: IDocumentManager): boolean {
  return changed(shell, documents).length > 0;
}

/** Save every document that has changed; return the paths of those that could not be. */
export async function saveChanged(
  shell: JupyterFrontEnd.IShell,
  documents: IDocumentManager
): Promise<string[]> {
  const failed: string[] = [];
  await Promise.all(
    changed(shell, documents).map(async context => {
      try {
        await context.save();
      } catch {
        // JupyterLab shows why, on its own.
      }
      if (context.model.dirty) {
        failed.push(context.path);
      }
    })
  );
  return failed;
}

function changed(
  shell: JupyterFrontEnd.IShell,
  documents: IDocumentManager
): DocumentRegistry.Context[] {
  const found = new Map<string, DocumentRegistry.Context>();
  for (const area of ['main', 'left', 'right', 'down']) {
    for (const widget of shell.widgets(area)) {
      const context = documents.contextForWidget(widget);
      // A document may be open several times; a read-only one cannot be saved.
      if (context?.isReady && context.model.dirty && context.contentsModel?.writable) {
        found.set(context.path, context);
      }
    }
  }
  return [...found.values()];
}
