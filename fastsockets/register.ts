/** `node --import fastsockets/register app.js`: relinks this program. Loads on any platform. */
import { prepareNames } from './connect/names.ts'
import { install } from './relink/install.ts'

if (install()) await prepareNames()
