// The open documents, and what of them would be lost.

import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { IDocumentManager } from '@jupyterlab/docmanager';
import type { DocumentRegistry } from '@jupyterlab/docregistry';

/** Whether something would be lost that can be saved. */
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

/** Return the paths of the documents that would be lost, also of those that cannot be saved. */
export function changedPaths(shell: JupyterFrontEnd.IShell, documents: IDocumentManager): string[] {
  return pathsOf(unsaved(shell, documents));
}

/** Return the paths of the documents that would be lost as they cannot be saved, such as templates. */
export function readOnlyPaths(
  shell: JupyterFrontEnd.IShell,
  documents: IDocumentManager
): string[] {
  return pathsOf(unsaved(shell, documents).filter(context => !isWritable(context)));
}

/** Return when an open document was last saved, in seconds since 1970; `null` if none can be. */
export function savedAt(shell: JupyterFrontEnd.IShell, documents: IDocumentManager): number | null {
  const moments = opened(shell, documents)
    .filter(isWritable)
    .map(context => Date.parse(context.contentsModel?.last_modified ?? '') / 1000)
    .filter(moment => !isNaN(moment));
  return moments.length > 0 ? Math.max(...moments) : null;
}

/** Return the path of the document in front, or nothing. */
export function currentPath(shell: JupyterFrontEnd.IShell, documents: IDocumentManager): string {
  const front = shell.currentWidget;
  return (front && documents.contextForWidget(front)?.path) || '';
}

function changed(
  shell: JupyterFrontEnd.IShell,
  documents: IDocumentManager
): DocumentRegistry.Context[] {
  return unsaved(shell, documents).filter(isWritable);
}

function unsaved(
  shell: JupyterFrontEnd.IShell,
  documents: IDocumentManager
): DocumentRegistry.Context[] {
  return opened(shell, documents).filter(context => context.isReady && context.model.dirty);
}

function isWritable(context: DocumentRegistry.Context): boolean {
  return !!context.contentsModel?.writable;
}

function pathsOf(contexts: DocumentRegistry.Context[]): string[] {
  return [...new Set(contexts.map(context => context.path))];
}

function opened(
  shell: JupyterFrontEnd.IShell,
  documents: IDocumentManager
): DocumentRegistry.Context[] {
  // Opened twice it is still one context; opened as a notebook and as a text it is two.
  const found = new Set<DocumentRegistry.Context>();
  for (const area of ['main', 'left', 'right', 'down']) {
    for (const widget of shell.widgets(area)) {
      const context = documents.contextForWidget(widget);
      if (context) {
        found.add(context);
      }
    }
  }
  return [...found];
}
