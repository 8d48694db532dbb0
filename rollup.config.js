import { basename, resolve } from 'node:path'
import ts from 'typescript'

/** After the compiler: parts, which are CommonJS files (docs/decisions/0087-few-files.md). A part holds what its root imports and no part before it has. */
const ROOTS = `fastsockets/relink/preload fastsockets/relink/light-phase nic/performance
fastsockets/bootstrap/held-probe fastsockets/bootstrap/early-ports fastsockets/bootstrap/early-callers fastsockets/promotion/native-signs fastsockets/promotion/early-native fastsockets/relink/light-folder fastsockets/relink/sent-sockets fastsockets/host/environment fastsockets/datagram/udp-handles fastsockets/relink/install fastsockets/policy/policy-file nic/verbs/verbs-driver nic/tcp/tcp-driver nic/ethernet/ethernet-driver nic/wrapper/wrappers
am/index fastsockets/raw/index fastsockets/datagram/index am/rpc/index nameservice/index`.split(/\s/)
/** Stay as the compiler writes them: programs, what users import, and small modules without state that the daemon loads alone. */
const APART = /^fastsockets.(cli|index|register|types)|^nic.(part|shown|trust)|^nameservice.(?!client|index)/
const files = ts.sys.readDirectory('', ['.ts'], [], ['nic', 'am', 'fastsockets', 'nameservice'])
/** Has no hash in its name, by which a running program finds no part of another version. No bundle has a file of this name beside it. */
const NAMED = /\b(am|rpc|connect|nic|nameservice|raw)\/index$|\b(entry|metrics|preload)$/
const compilerOptions = { target: 'es2022', module: 'esnext', removeComments: true, sourceMap: true }
function reaches(root, id, { getModuleInfo }, reached = new Set([resolve(`${root}.ts`)])) {
  for (const from of reached) for (const to of getModuleInfo(from).importedIds) reached.add(to)
  return reached.has(id)
}
function transform(source, fileName) {
  const { outputText, sourceMapText: map } = ts.transpileModule(source, { compilerOptions, fileName })
  const refer = file => this.emitFile({ type: 'chunk', id: resolve(fileName, '..', file) })
  const part = (_, file) => (file ? `require(import.meta.ROLLUP_FILE_URL_${refer(file)})` : '') // It has a `require`.
  return { code: outputText.replace(/^const require =.*|require\('(\..+?\.ts)'\)/gm, part), map }
}
const resolveFileUrl = ({ relativePath }) => `'./${relativePath}'`
function generateBundle(_, bundle) {
  for (const { isEntry, name, fileName, exports } of Object.values(bundle)) {
    const source = `import { loadPart } from '#parts'\nexport const { ${exports} } = loadPart(import.meta.url, './${basename(fileName)}')\n`
    if (isEntry && !/rpc.connect/.test(name)) this.emitFile({ type: 'asset', fileName: `${name}.js`, source })
  }
}
const entryFileNames = ({ name }) => (NAMED.test(name) ? '[name].part.cjs' : '[name]-[hash].cjs')
const manualChunks = (id, graph) => ROOTS.find(root => reaches(root, id, graph))
const output = { dir: 'dist', format: 'cjs', interop: 'default', chunkFileNames: '[name]-[hash].cjs' }
export default {
  input: Object.fromEntries(files.filter(file => !APART.test(file)).map(file => [file.slice(0, -3), file])),
  plugins: [{ transform, resolveFileUrl, resolveImportMeta: () => '__filename', generateBundle }],
  external: /^[^./]/,
  treeshake: false, // What is written and never read keeps memory for native code.
  output: { ...output, entryFileNames, manualChunks, sourcemap: true, sourcemapExcludeSources: true },
}
