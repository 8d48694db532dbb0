/**
 * The parts into which rollup puts our modules: CommonJS files, as `require` can load a part at the moment when it is needed. A
 * part holds what its root imports and no earlier part has. In the place of each module stays an ES module that exports
 * from its part what the module does.
 */
import { basename, dirname, join, relative, resolve } from 'node:path'
import ts from 'typescript'

const ROOTS = Object.entries({
  preload: 'fastsockets/relink/preload.ts',
  probe: 'fastsockets/relink/held-probe.ts',
  udp: 'fastsockets/datagram/udp-handles.ts',
  runtime: 'fastsockets/relink/install.ts',
  'node-20': 'fastsockets/host/node-20.ts',
  policy: 'fastsockets/policy/policy-file.ts',
  verbs: 'nic/verbs/verbs-driver.ts',
  tcp: 'nic/tcp/tcp-driver.ts',
  ethernet: 'nic/ethernet/ethernet-driver.ts',
  wrappers: 'nic/wrapper/wrappers.ts',
  endpoints: 'am/index.ts',
  raw: 'fastsockets/raw/index.ts',
  datagram: 'fastsockets/datagram/index.ts',
  'datagram-transport': 'fastsockets/datagram/datagram-transport.ts',
  entry: 'fastsockets/entry.ts',
  metrics: 'fastsockets/metrics.ts',
  rpc: 'am/rpc/index.ts',
  names: 'nameservice/index.ts',
}).map(([part, file]) => ({ part, root: resolve(file) }))
/** What users import: a CommonJS file beside each, for `require`. It shares its parts with the ES module. */
const REQUIRED =
  /^(am|am\/rpc|nic|nameservice|fastsockets\/raw)\/index\.js$|^fastsockets\/(entry|metrics)\.js$/
/** In no part, as it uses ES modules of others: `require` gets a copy, which uses their CommonJS files. */
const COPIED = /^am\/rpc\/connect\//
/** By the path of a module. Modules in no part stay as the compiler wrote them. */
const partOf = new Map()

export function choosePart(id, { getModuleInfo }) {
  const reached = new Set()
  const reach = from => {
    if (reached.has(from)) return
    reached.add(from)
    for (const to of getModuleInfo(from).importedIds) reach(to)
  }
  const found = ROOTS.find(({ root }) => {
    reach(root)
    return reached.has(id)
  })
  partOf.set(id, found?.part)
  return found?.part
}

/** A hash in the name: a running program finds no part of another version. The preloads name theirs. */
export function nameFile({ moduleIds: [id] }) {
  const part = partOf.get(id)
  if (part === undefined) return '[name].js'
  return `fastsockets/${part}${part === 'preload' ? '' : '-[hash]'}.cjs`
}

const compilerOptions = {
  target: 'es2022',
  module: 'esnext',
  removeComments: true,
  sourceMap: true,
  verbatimModuleSyntax: true,
}

export const parts = {
  name: 'parts',
  /** The client of the name service is no part: it is imported on first use. */
  resolveId: source =>
    source.endsWith('/nameservice/index.ts')
      ? { id: resolve('nameservice/index.js'), external: 'relative' }
      : null,
  /** For `createRequire`. */
  resolveImportMeta: () => '__filename',
  transform(source, id) {
    const { outputText, sourceMapText } = ts.transpileModule(source, { compilerOptions, fileName: id })
    const own = (_, to) => `require('part ${join(dirname(id), to)}')`
    return { code: outputText.replace(/require\('(\..*?)'\)/g, own), map: sourceMapText }
  },
  renderChunk(code, { fileName, name }, _options, { chunks }) {
    const fileOf = id => Object.values(chunks).find(({ moduleIds }) => moduleIds.includes(id)).fileName
    const checked = name === 'runtime' ? code.replace(/^'use strict';/, `$&${checkPlace(fileName)}`) : code
    return { code: checked.replace(/'part (.*?)'/g, (_, id) => `'./${basename(fileOf(id))}'`), map: null }
  },
  generateBundle(_options, bundle) {
    for (const { fileName, moduleIds, facadeModuleId, code, type } of Object.values(bundle)) {
      if (type === 'asset' || facadeModuleId === null) continue
      const { exports } = this.getModuleInfo(facadeModuleId)
      const source = relative('.', facadeModuleId).replace(/ts$/, 'js')
      if (REQUIRED.test(source)) {
        const isFacade = moduleIds.length === 0
        this.emitFile(isFacade ? copyOf(source, code) : requiredOver(fileName, source, exports))
      }
      if (COPIED.test(source)) this.emitFile(copyOf(source, code))
      if (moduleIds.length === 0) bundle[fileName].code = asModule(code)
      // Rollup lets a part stand for one of its modules, too.
      else if (partOf.get(facadeModuleId)) this.emitFile(moduleOver(fileName, source, exports))
      else delete bundle[fileName]
      if (fileName.endsWith('.js')) delete bundle[`${fileName}.map`]
    }
  },
}

/** `import` of a part would have Node's lexer read it through for names of exports, which takes longer than to load it. */
const REQUIRE = `import { createRequire } from 'node:module'
const require = createRequire(import.meta.url)
`
const LEAVE_OUT =
  'leave it out of the bundle (esbuild --external:fastsockets; "external" of rollup, "externals" of webpack), and install it beside the bundle'
const BUNDLED = `{ code: 'ERR_FASTSOCKETS_BUNDLED' }`
/** What users import says what is wrong with a bundle: bundlers do not see which files it requires. */
const REQUIRE_OR_SAY = `import { createRequire } from 'node:module'
const require = part => {
  try {
    return createRequire(import.meta.url)(part)
  } catch (cause) {
    if (!/Cannot find module '\\.|argument 'filename'/.test(cause.message)) throw cause
    throw Object.assign(new Error('files of fastsockets are missing: ${LEAVE_OUT}', { cause }), ${BUNDLED})
  }
}
`
/** Where a bundler has put a part in, those that it requires when they are needed are missing. In one line, for the source map. */
const checkPlace = file =>
  `if (!__filename.endsWith('${basename(file)}')) throw Object.assign(new Error('fastsockets is in a bundle: ${LEAVE_OUT}'), ${BUNDLED});`

/** Of a CommonJS file that only exports what others do. */
function asModule(code) {
  return (
    REQUIRE_OR_SAY +
    code
      .replace(/^('use strict'|require\(.*\));|^\/\/#.*$/gm, '')
      .replace(/^exports\.(\w+) = /gm, 'export const $1 = ')
  )
}

function moduleOver(part, fileName, exports) {
  const start = REQUIRED.test(fileName) ? REQUIRE_OR_SAY : REQUIRE
  const source = `${start}export const { ${exports} } = require('${placeOf(part, fileName)}')\n`
  return { type: 'asset', fileName, source }
}

function requiredOver(part, fileName, exports) {
  const list = exports.join(', ')
  return {
    type: 'asset',
    fileName: commonName(fileName),
    source: `'use strict'\nconst { ${list} } = require('${placeOf(part, fileName)}')\nmodule.exports = { ${list} }\n`,
  }
}

function copyOf(fileName, code) {
  const source = code
    .replace(/require\('(\.[^']*)\.js'\)/g, "require('$1.cjs')")
    .replace(/^\/\/# source.*$/m, '')
  return { type: 'asset', fileName: commonName(fileName), source }
}

/** As `require` in `from` wants it. */
function placeOf(file, from) {
  const path = relative(dirname(from), file)
  return path.startsWith('.') ? path : `./${path}`
}

function commonName(fileName) {
  return fileName.replace(/js$/, 'cjs')
}
