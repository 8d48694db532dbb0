/** `node --require fastsockets/register app.js`: the same for CommonJS preloads. Needs Node 20.19, as require(esm) does. */
// What is required cannot be waited for: here the name service is got ready while the program runs.
const { features } = process as { features: { require_module?: boolean } }
// V8 can be told to leave memory for several threads out: then there is nothing to be had.
const isShared = typeof SharedArrayBuffer === 'function' && typeof Atomics === 'object'
if (!features.require_module) void import('./register.js')
else if (isShared && require('./relink/install.js').install())
  void require('./connect/names.js').prepareNames()
