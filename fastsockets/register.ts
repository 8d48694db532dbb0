/** `node --import fastsockets/register app.js`: relinks this program. Never fails the program. */
import { createRequire } from 'node:module'

// Not imported: Node would search its text for exports first, which takes longer than loading it.
createRequire(import.meta.url)('./relink/preload.part.cjs').relink()
