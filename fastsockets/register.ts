/** `node --import fastsockets/register app.js`: relinks this program. Loads on any platform. */
import { install } from './install.ts'
import { prepareNames } from './names.ts'

if (install()) await prepareNames()
