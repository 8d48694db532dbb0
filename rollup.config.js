/**
 * After the compiler: all that a relinked program loads becomes one file, instead of 200 that Node takes the better part
 * of a millisecond each for. Every module stays where it was, and exports from there what it did (docs/decisions/0087).
 */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'

const RUNTIME = 'fastsockets/runtime'
const LAYERS = ['nic', 'am', 'fastsockets']
/** Programs, what few load, the two modules whose loading relinks, and what only compilers look at. */
const APART = /^dist\/fastsockets\/(cli\/|index\.js|metrics\.js|register\.js|runtime\.js|types\.js)/

const modules = LAYERS.flatMap(layer =>
  readdirSync(join('dist', layer), { recursive: true }).map(file => join('dist', layer, file)),
).filter(file => file.endsWith('.js') && !APART.test(file))

/** Loaded when it is needed, by some. */
const isNameService = id => id.includes('/nameservice/')
const isPackage = id => !/^(\.|\/|dist\/|fastsockets\/)/.test(id)

/** The chunk has its name from its first module, which is empty. */
const naming = {
  name: 'naming',
  resolveId: id => (id === RUNTIME ? `\0${RUNTIME}` : null),
  load: id => (id === `\0${RUNTIME}` ? '' : null),
}

export default {
  input: Object.fromEntries([
    [RUNTIME, RUNTIME],
    ...modules.map(file => [file.slice('dist/'.length, -'.js'.length), file]),
  ]),
  external: id => !id.startsWith('\0') && (isPackage(id) || isNameService(id)),
  plugins: [naming],
  output: {
    dir: 'dist',
    hoistTransitiveImports: false,
    manualChunks: () => RUNTIME,
    minifyInternalExports: false,
  },
}
