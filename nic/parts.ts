/**
 * Parts are the CommonJS files into which rollup.config.js puts our modules (docs/decisions/0087-few-files.md). The ES module that takes
 * the place of each of our modules loads its part with `loadPart`.
 */
import { createRequire } from 'node:module'

const LEAVE_OUT =
  'leave it out of the bundle (esbuild --external:fastsockets; "external" of rollup, "externals" of webpack), and install it beside the bundle'
/** Node's words for a part that is not beside the bundle, and for a bundle that does not know its own place. */
const IN_A_BUNDLE = /Cannot find module '\.|argument 'filename'/

/**
 * Loads `part`, relative to the ES module at `url`. Not by `import`: Node would search the part for exports, which takes longer
 * than to load it, and a bundler would copy our state. Throws `ERR_FASTSOCKETS_BUNDLED` from inside a bundle.
 */
export function loadPart(url: string, part: string): unknown {
  try {
    // Bundlers that know `createRequire` leave nothing of it.
    const require = createRequire(url) as NodeJS.Require | undefined
    if (require !== undefined) return require(part)
  } catch (cause) {
    if (!IN_A_BUNDLE.test((cause as Error).message)) throw cause
    throw bundled('files of fastsockets are missing', cause)
  }
  throw bundled('fastsockets is in a bundle')
}

/** Throws `ERR_FASTSOCKETS_BUNDLED` if `file`, the path of the code that runs, is not that of the part `name`: the others are missing. */
export function expectPart(name: string, file: string): void {
  if (!new RegExp(`${name}-[\\w-]+\\.cjs$`).test(file)) throw bundled('fastsockets is in a bundle')
}

function bundled(what: string, cause?: unknown): Error {
  const error = new Error(`${what}: ${LEAVE_OUT}`, { cause })
  return Object.assign(error, { code: 'ERR_FASTSOCKETS_BUNDLED' })
}
