// What is said of what the launcher offers: the welcome, templates, TensorBoards and web tools.

import type { ITemplateCopy } from '../common/server';
import type { ITexts } from '../common/time';

/** What the welcome and its command say. */
export function welcomeLabels(texts: ITexts) {
  return {
    title: texts.__('Welcome'),
    caption: texts.__('Where things are, and how to start'),
    category: texts.__('Help'),
    dismiss: texts.__('Dismiss the welcome'),
    dismissCaption: texts.__('Dismiss; Help ▸ Welcome brings it back')
  };
}

/** The three steps of the welcome, and their buttons. */
export function stepLabels(texts: ITexts) {
  return {
    begin: texts.__('Begin with a template'),
    howToBegin: texts.__('Choose one; your own copy opens.'),
    newFromTemplate: texts.__('New from Template…'),
    run: texts.__('Run it'),
    howToRun: texts.__(
      'Press Shift+Enter for one cell, or click Run All in the toolbar. TensorBoard plots what it logs.'
    ),
    end: texts.__('Extend, or stop'),
    howToEnd: texts.__(
      'The time left is at the bottom. Stopping frees the GPUs; closing the page does not.'
    ),
    extend: texts.__('Extend…'),
    stop: texts.__('Stop Session…')
  };
}

/** Greet; `title`: the portal's, or empty. */
export function greeting(title: string, texts: ITexts): string {
  return title ? texts.__('Welcome to the %1', title) : texts.__('Welcome');
}

/** Say which folder a button opens. */
export function openFolderLabel(name: string, texts: ITexts): string {
  return texts.__('Open the folder %1', name);
}

/** Say what a folder has in it, where the site does not say so itself. */
export function folderNote(
  folder: { target: string; has_templates: boolean },
  texts: ITexts
): string {
  return folder.has_templates
    ? texts.__(
        'Notebooks and job scripts to start from. They stay as they are; you work on copies.'
      )
    : texts.__('A link to %1.', folder.target);
}

/** What the commands for templates say, and the button in a template. */
export function templateLabels(texts: ITexts) {
  return {
    create: texts.__('New from Template'),
    createInPalette: texts.__('New from Template…'),
    createCaption: texts.__('Choose a template and open a copy of your own'),
    folderArgument: texts.__('The folder for the copy'),
    category: texts.__('Notebook Operations'),
    copy: texts.__('Open My Own Copy'),
    copyCaption: texts.__('Copy this template into your files and open the copy'),
    copyTooltip: texts.__('This is a template: it runs, but your changes are not kept')
  };
}

/** What the dialog with the list of templates says. */
export function templateDialogLabels(texts: ITexts) {
  return {
    title: texts.__('New from Template'),
    search: texts.__('Search'),
    searchLabel: texts.__('Search templates'),
    none: texts.__('No matching templates.'),
    create: texts.__('Create'),
    createCaption: texts.__('Open a copy')
  };
}

/** Say where the copy of a template is, and what was copied with it. */
export function copied(copy: ITemplateCopy, texts: ITexts): string {
  const { path, companions } = copy;
  return companions.length
    ? texts._n(
        '%2 is your own copy, and so is %3, which it uses.',
        '%2 is your own copy, and so are %3, which it uses.',
        companions.length,
        path,
        companions.join(', ')
      )
    : texts.__('%1 is your own copy.', path);
}

/** Say that a template was not copied, and why. */
export function notCopied(path: string, why: string, texts: ITexts): string {
  return texts.__('%1 was not copied: %2', path, why);
}

/** Say that it is not known which templates there are, and why. */
export function notListed(why: string, texts: ITexts): string {
  return texts.__('The templates cannot be listed: %1', why);
}

/** What the panel of what runs says of any kind of thing. */
export function runningLabels(texts: ITexts) {
  return {
    stop: texts.__('Stop'),
    stopAll: texts.__('Stop All')
  };
}

/** The name of the card, the same in every language. */
export const TENSORBOARD = 'TensorBoard';

/** What TensorBoard's commands say. */
export function tensorboardLabels(texts: ITexts) {
  return {
    open: texts.__('Open in TensorBoard'),
    openCaption: texts.__('Show the curves in this folder and below it'),
    noFolder: texts.__('TensorBoard: select a folder with event files'),
    openCurrent: texts.__('Open TensorBoard for the Current Folder'),
    openCurrentCaption: texts.__(
      'Show the curves in the current folder, or in ~/logs if it has none'
    ),
    folderArgument: texts.__('The current folder'),
    category: texts.__('File Operations')
  };
}

/** What the panel of what runs says of TensorBoards. */
export function tensorboardKind(texts: ITexts) {
  return {
    name: texts.__('TensorBoards'),
    stopAllQuestion: texts.__('Stop all TensorBoards in this session?')
  };
}

/** Say for which folder a button opens TensorBoard. */
export function openTensorboardFor(folder: string, texts: ITexts): string {
  return texts.__('Open TensorBoard for %1', folder);
}

/** Say which folder a TensorBoard shows. */
export function tensorboardFor(place: string, texts: ITexts): string {
  return texts.__('TensorBoard for %1', place);
}

/** Say that the browser did not open its tab. */
export function tensorboardBlocked(texts: ITexts): string {
  return texts.__('The browser blocked TensorBoard: allow pop-ups for this page.');
}

/** Say that a TensorBoard was not stopped, and why. */
export function tensorboardNotStopped(why: string, texts: ITexts): string {
  return texts.__('TensorBoard was not stopped: %1', why);
}

/** What the command for web tools says. */
export function toolLabels(texts: ITexts) {
  return {
    open: texts.__('Open a Web Tool'),
    nameArgument: texts.__('The name of the tool'),
    category: texts.__('Tools')
  };
}

/** What the panel of what runs says of web tools. */
export function toolKind(texts: ITexts) {
  return {
    name: texts.__('Tools'),
    stopAllQuestion: texts.__('Stop all tools in this session?')
  };
}

/** Say what a tool's card does, and who else can reach the tool. */
export function toolCaption(title: string, isOpenToNode: boolean, texts: ITexts): string {
  const opens = texts.__('Start %1 in this session and open it in a tab.', title);
  return isOpenToNode
    ? `${opens} ${texts.__('Every user of this node can connect to its port.')}`
    : opens;
}

/** Name a tool that is not ready yet. */
export function toolStarting(title: string, texts: ITexts): string {
  return texts.__('%1 (starting)', title);
}

/** Say which tool is opened. */
export function openToolLabel(title: string, texts: ITexts): string {
  return texts.__('Open %1 in a tab', title);
}

/** Say that a tool was not stopped, and why. */
export function toolNotStopped(title: string, why: string, texts: ITexts): string {
  return texts.__('%1 was not stopped: %2', title, why);
}
