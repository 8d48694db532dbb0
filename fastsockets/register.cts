/** `node --require fastsockets/register app.js`: as register.ts, for CommonJS preloads. Needs Node 20.19, as require(esm) does. */
// `require` cannot await: `prepareNames` goes on while the program runs.
const { features } = process as { features: { require_module?: boolean } }
try {
  // Without SharedArrayBuffer, newer Node cannot load ES modules by `require`, and leaves rejected promises behind.
  if (typeof SharedArrayBuffer !== 'function') throw new Error('there is no SharedArrayBuffer')
  if (!features.require_module) void import('./register.js')
  else if (require('./relink/install.js').install()) void require('./connect/names.js').prepareNames()
} catch (error) {
  process.emitWarning(`everything stays on TCP: ${(error as Error | undefined)?.message}`, {
    code: 'FASTSOCKETS_NOT_STARTED',
  })
}
