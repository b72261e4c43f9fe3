// What the portal adds to JupyterLab; a room for each concern.

import { clock } from './clock';
import { idle } from './idle';
import { templates } from './templates';
import { tensorboard } from './tensorboard';
import { tools } from './tools';

export default [clock, idle, templates, tensorboard, tools];
