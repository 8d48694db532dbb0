/** `node --import fastsockets/register app.js`: relinks this program. Loads on any platform. */
import { install } from './install.ts'

install()
