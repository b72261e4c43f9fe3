// What the portal adds to JupyterLab; a room for each concern.

import { clock } from './clock';
import { idle } from './idle';
import { look } from './look';
import { templates } from './templates';
import { tensorboard } from './tensorboard';
import { tools } from './tools';
import { welcome } from './welcome';

export default [clock, idle, look, templates, tensorboard, tools, welcome];
