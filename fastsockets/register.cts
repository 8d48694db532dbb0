/** `node --require fastsockets/register app.js`: the same for CommonJS preloads. Needs Node 20.19, as require(esm) does. */
// What is required cannot be waited for: here the name service is got ready while the program runs.
const { features } = process as { features: { require_module?: boolean } }
try {
  // Where memory cannot be shared, newer Node cannot load ES modules this way, and rejects promises of its own.
  if (typeof SharedArrayBuffer !== 'function') throw new Error('there is no SharedArrayBuffer')
  if (!features.require_module) void import('./register.js')
  else if (require('./relink/install.js').install()) void require('./connect/names.js').prepareNames()
} catch (error) {
  process.emitWarning(`everything stays on TCP: ${(error as Error | undefined)?.message}`, {
    code: 'FASTSOCKETS_NOT_STARTED',
  })
}
