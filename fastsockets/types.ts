/**
 * The types of `import net from 'fastsockets'`: the default export is also a namespace, so that `net.Socket`
 * is a type, as with `node:net`. For the compiler only: at run time index.ts takes its place.
 */
import * as fastsockets from './index.ts'

export * from './index.ts'
export { fastsockets as default }
