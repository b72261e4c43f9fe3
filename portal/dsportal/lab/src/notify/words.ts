// What is said of long work that ended, and of being notified. JupyterLab shows 140 characters of a
// notification.

import { span, type ITexts } from '../common/time';

/** What the command says. */
export function notifyCommandLabels(texts: ITexts) {
  return {
    label: texts.__('Notify Me When Long-Running Work Ends'),
    caption: texts.__('Show a browser notification, unless JupyterLab is in front'),
    category: texts.__('Session')
  };
}

/** What the buttons of the prompt say. */
export function permissionPromptLabels(texts: ITexts) {
  return {
    accept: texts.__('Notify Me'),
    decline: texts.__('No, Thanks')
  };
}

/** Offer to notify. */
export function permissionPrompt(texts: ITexts): string {
  return texts.__(
    'Do you want to be notified when long-running work ends while you are elsewhere?'
  );
}

/** Say that the browser refuses. */
export function notAllowed(texts: ITexts): string {
  return texts.__('Your browser blocks notifications from the portal.');
}

/** Say that a cell of a notebook has ended. */
export function cellEnded(notebook: string, success: boolean, texts: ITexts): string {
  return success
    ? texts.__('Cell finished in %1', notebook)
    : texts.__('Cell failed in %1', notebook);
}

/** Say how long it ran. */
export function ranFor(seconds: number, texts: ITexts): string {
  return texts.__('It ran for %1.', span(seconds, texts));
}
