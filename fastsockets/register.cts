/** `node --require fastsockets/register app.js`: the same for CommonJS preloads. Needs Node 20.19, as require(esm) does. */
require('./register.js')
