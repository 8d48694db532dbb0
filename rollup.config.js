/**
 * After the compiler: all that a relinked program loads becomes one file, instead of 200 that Node takes the better part
 * of a millisecond each for. Every module stays where it was, and exports from there what it did (docs/decisions/0087).
 */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { parseAst } from '@rollup/wasm-node/parseAst'
import { minify } from 'terser'

const RUNTIME = 'fastsockets/runtime'
/** What relinked programs do not need. */
const RAW = 'fastsockets/raw'
const LAYERS = ['nic', 'am', 'fastsockets']
/** Programs, what few load, the two modules whose loading relinks, and what only compilers look at. */
const APART = /^dist\/fastsockets\/(cli\/|index\.js|metrics\.js|register\.js|runtime\.js|types\.js)/
/** Small modules without state: the one file has a copy, and the daemon loads them without it. */
const TWICE = /^dist\/nic\/(shown-text|trusted-file)\.js$/

const modules = LAYERS.flatMap(layer =>
  readdirSync(join('dist', layer), { recursive: true }).map(file => join('dist', layer, file)),
).filter(file => file.endsWith('.js') && !APART.test(file) && !TWICE.test(file))

/** Loaded when it is needed, by some. */
const isNameService = id => id.includes('/nameservice/')
const isPackage = id => !/^(\.|\/|dist\/|fastsockets\/)/.test(id)

/** The chunk has its name from its first module, which is empty. */
const naming = {
  name: 'naming',
  resolveId: id => (id === RUNTIME ? `\0${RUNTIME}` : null),
  load: id => (id === `\0${RUNTIME}` ? '' : null),
}

/** What programs see with `console.log`: there, private stays private. */
const VISIBLE =
  /^(SocketHandle|HandleScope|Noted|Waiting|Endpoint|Message|ReceivedMessage|FastRawSocket|TcpRawSocket|RawServer|CompletionQueue)$/

/**
 * `#name` becomes `$name`, which costs cold code a third less (docs/decisions/0087). The compiler has seen to it that nobody
 * else uses it; that no two classes of one line have the same name is seen to here.
 */
const ordinaryNames = {
  name: 'ordinary-names',
  renderChunk: code => ({ code: withOrdinaryNames(code), map: null }),
}

function withOrdinaryNames(code) {
  const edits = []
  const namesOf = new Map()
  const program = parseAst(code)
  const imports = program.body.filter(({ source }) => source?.value.startsWith('.'))
  const foreign = new Set(imports.flatMap(({ specifiers = [] }) => specifiers.map(({ local }) => local.name)))
  const visit = (node, owners) => {
    if (Array.isArray(node)) for (const each of node) visit(each, owners)
    if (typeof node?.type !== 'string') return
    if (node.type === 'ClassDeclaration' || node.type === 'ClassExpression') {
      const names = new Set(
        node.body.body
          .map(({ key }) => key)
          .filter(isPrivate)
          .map(({ name }) => name),
      )
      if (foreign.has(node.superClass?.name))
        throw new Error(`${node.id.name}: what its ancestor in another chunk calls private is not known`)
      const inherited = namesOf.get(node.superClass?.name) ?? new Set()
      for (const name of names)
        if (inherited.has(name)) throw new Error(`${node.id.name}: #${name} is an ancestor's, too`)
      const isVisible = VISIBLE.test(node.id?.name)
      if (!isVisible) namesOf.set(node.id?.name, new Set([...inherited, ...names]))
      owners = [{ names, isVisible }, ...owners]
    }
    if (node.operator === 'in' && isPrivate(node.left) && !owners[0].isVisible)
      throw new Error(`#${node.left.name} in: say it without`)
    if (isPrivate(node) && !owners.find(({ names }) => names.has(node.name)).isVisible) edits.push(node)
    for (const value of Object.values(node)) if (typeof value === 'object') visit(value, owners)
  }
  visit(program.body, [])
  let at = 0
  const parts = edits
    .toSorted((a, b) => a.start - b.start)
    .map(({ start, end, name }) => {
      const part = `${code.slice(at, start)}$${name}`
      at = end
      return part
    })
  return parts.join('') + code.slice(at)
}

/**
 * V8 keeps all of it in each program, as text, and marks a small program again and again once it has more than 8 MB
 * (docs/decisions/0087). So comments go, space, and the names of what is local. Functions and classes keep theirs, and each statement has its line, for stack
 * traces. What is not ASCII is escaped: with one such character V8 keeps two bytes for each.
 */
const small = {
  name: 'small',
  renderChunk: async (code, { name }) => (name === RUNTIME ? await shrink(code) : null),
}

async function shrink(code) {
  const { code: small } = await minify(code, {
    module: true,
    compress: false,
    mangle: { keep_fnames: true, keep_classnames: true },
    format: { comments: false, semicolons: false, ascii_only: true },
  })
  return { code: small, map: null }
}

function isPrivate(node) {
  return node?.type === 'PrivateIdentifier'
}

export default {
  input: Object.fromEntries([
    [RUNTIME, RUNTIME],
    ...modules.map(file => [file.slice('dist/'.length, -'.js'.length), file]),
  ]),
  // Nothing is left out, not even what is written and never read: that is how memory is kept for native code.
  treeshake: false,
  external: id => !id.startsWith('\0') && (isPackage(id) || isNameService(id)),
  plugins: [naming, ordinaryNames, small],
  output: {
    dir: 'dist',
    hoistTransitiveImports: false,
    manualChunks: id => (id.includes('/fastsockets/raw/') ? RAW : RUNTIME),
    minifyInternalExports: false,
  },
}
