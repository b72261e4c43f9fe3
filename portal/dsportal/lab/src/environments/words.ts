// What the tab of the user's own environments says, and the command that opens it.

import type { IEnvironmentFolder, IOwnEnvironment, ITask } from './server';
import { bytes } from '../common/bytes';
import type { ITexts } from '../common/time';
import { storageSummary } from '../common/words';

/** What the empty field for packages shows. */
export const PACKAGES_EXAMPLE = 'einops kornia==0.8.2';

/** What the command says; `label` is the title of its tab too. */
export function environmentsCommandLabels(texts: ITexts) {
  return {
    label: texts.__('My Environments'),
    caption: texts.__('Install packages of your own, as a kernel and for jobs')
  };
}

/** What the tab says whatever there is. */
export function viewLabels(texts: ITexts) {
  return {
    title: texts.__('My Environments'),
    introduction: texts.__(
      'Install your own packages on top of a shipped environment. Each environment is a kernel here; in terminals and jobs, load it with “module load NAME”.'
    ),
    none: texts.__('No environments yet.'),
    output: texts.__('Output'),
    remove: texts.__('Remove'),
    stop: texts.__('Stop')
  };
}

/** What the form for a new environment says. */
export function formLabels(texts: ITexts) {
  return {
    title: texts.__('New environment'),
    name: texts.__('Name'),
    base: texts.__('On top of'),
    noBase: texts.__('Plain Python, with only my packages'),
    conda: texts.__('Conda, with only my packages'),
    folder: texts.__('Stored in'),
    packages: texts.__('Packages'),
    create: texts.__('Create')
  };
}

/** Name a folder, and say where it is. */
export function folderLabel(folder: IEnvironmentFolder): string {
  return `${folder.name} (${folder.path})`;
}

/** Say how full the storage of a folder is, or why it cannot be used: `home: 1.2 GiB of … used · /home/ann/…`. */
export function folderText(folder: IEnvironmentFolder, texts: ITexts): string {
  const { name, storage, trouble } = folder;
  if (trouble) {
    return texts.__('%1: %2', name, trouble);
  }
  const use = storage ? storageSummary({ ...storage, name }, texts) : name;
  return `${use} · ${folder.path}`;
}

/** Say what an environment is built on, how large it is, where it lies and what is in it. */
export function descriptionOf(one: IOwnEnvironment, texts: ITexts): string {
  const size = one.size === null ? texts.__('size unknown') : bytes(one.size);
  const base = one.on ? texts.__('on %1', one.on) : texts.__('not finished');
  return [base, size, one.in, one.packages.join(' ')].filter(Boolean).join(' · ');
}

/** Say how far something is that is being done, or how it ended. */
export function progress(task: ITask, texts: ITexts): string {
  const words = {
    create: {
      running: texts.__('Creating %1…', task.name),
      done: texts.__('%1 is ready.', task.name),
      failed: texts.__('%1 was not created.', task.name)
    },
    remove: {
      running: texts.__('Removing %1…', task.name),
      done: texts.__('%1 was removed.', task.name),
      failed: texts.__('%1 was not removed.', task.name)
    }
  };
  return words[task.action][task.state];
}

/** Say what a name may be. */
export function nameRule(texts: ITexts): string {
  return texts.__('Use letters, digits and . _ - and begin with a letter or a digit.');
}

/** Say which environment a button removes. */
export function removeLabel(name: string, texts: ITexts): string {
  return texts.__('Remove %1', name);
}

/** Ask before an environment is removed. */
export function removeQuestion(name: string, texts: ITexts): string {
  return texts.__('Remove %1?', name);
}

/** Say what is lost with it. */
export function removeLoss(texts: ITexts): string {
  return texts.__(
    'All packages in it are deleted. Notebooks that use its kernel will need another one.'
  );
}
