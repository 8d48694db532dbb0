/**
 * What TypeScript sees of `import net from 'fastsockets'`: the default export is a namespace, too, so that `net.Socket` is
 * a type, as with `node:net`. For the compiler only: at run time it is index.ts.
 */
import * as fastsockets from './index.ts'

export * from './index.ts'
export { fastsockets as default }
