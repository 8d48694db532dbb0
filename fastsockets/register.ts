/**
 * `node --import fastsockets/register app.js`: relinks this program. Loads on any platform and never fails the program:
 * if the fast way cannot be loaded, all connections use TCP, and a warning says why.
 */
try {
  const { install } = await import('./relink/install.ts')
  const { prepareNames } = await import('./connect/names.ts')
  if (install()) await prepareNames()
} catch (error) {
  process.emitWarning(`everything stays on TCP: ${(error as Error | undefined)?.message}`, {
    code: 'FASTSOCKETS_NOT_STARTED',
  })
}

export {}
