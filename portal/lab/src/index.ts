// What the portal adds to JupyterLab; a room for each concern.

import { clock } from './clock';
import { idle } from './idle';
import { templates } from './templates';

export default [clock, idle, templates];
