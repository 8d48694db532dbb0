/** After the compiler: makes a few files of what relinked programs load (docs/decisions/0087-few-files.md). */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { choosePart, nameFile, parts } from './rollup.parts.js'
import { declarations } from './rollup.types.js'

/** Programs, what users import, and small modules without state that the daemon loads alone. */
const APART = /^fastsockets\/(cli\/|(index|register|types)\.)|\.cts$|^nic\/(shown-text|trusted-file)\./

const files = ['nic', 'am', 'fastsockets'].flatMap(layer =>
  readdirSync(layer, { recursive: true }).map(file => join(layer, file)),
)
const client = readdirSync('nameservice/client').map(file => join('nameservice/client', file))
const modules = [...files, ...client, 'nameservice/index.ts'].filter(
  file => file.endsWith('.ts') && !APART.test(file),
)

export default {
  input: Object.fromEntries(modules.map(file => [file.slice(0, -'.ts'.length), file])),
  // Nothing is left out, not even what is written and never read: that is how memory is kept for native code.
  treeshake: false,
  external: id => !/^[./]/.test(id),
  plugins: [parts, declarations],
  output: {
    dir: 'dist',
    format: 'cjs',
    interop: 'default',
    externalLiveBindings: false,
    hoistTransitiveImports: false,
    minifyInternalExports: false,
    sourcemap: true,
    sourcemapExcludeSources: true,
    manualChunks: choosePart,
    entryFileNames: nameFile,
    chunkFileNames: nameFile,
  },
}
