/** `node --require fastsockets/register app.js`: as register.ts, for CommonJS preloads. */
require('./relink/preload.part.cjs').relink()
