/**
 * `npm run test:connect`: the conformance cases of connectrpc/conformance that need no HTTP, by the clients and the service that
 * connectrpc/connect-es has for them, unchanged, over `createFastTransport` and `serveConnect` between two processes.
 *
 *   npm run test:connect -- --connect-es REPOSITORY --conformance REPOSITORY     # URLs or folders of git; by default GitHub's
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import ts from 'typescript'
import { runSuites } from './run-suites.ts'

/** What the cases and their clients are taken from. */
const CONNECT_ES = 'v2.1.2'
const CONFORMANCE = 'v1.0.5'

const { values } = parseArgs({
  options: {
    'connect-es': { type: 'string', default: 'https://github.com/connectrpc/connect-es' },
    conformance: { type: 'string', default: 'https://github.com/connectrpc/conformance' },
  },
})

const sources = mkdtempSync(join(tmpdir(), 'connect-suite-'))
/** Below our node_modules, so that the compiled clients find Connect. */
const compiled = fileURLToPath(new URL('compiled', import.meta.url))
try {
  extract(values['connect-es'], CONNECT_ES, 'packages/connect-conformance/src')
  extract(values.conformance, CONFORMANCE, 'internal/app/connectconformance/testsuites/data')
  compile(join(sources, 'packages/connect-conformance/src'))
  const data = join(sources, 'internal/app/connectconformance/testsuites/data')
  const failures = await runSuites(
    compiled,
    readdirSync(data).map(name => join(data, name)),
  )
  process.exitCode = failures === 0 ? 0 : 1
} finally {
  rmSync(sources, { recursive: true })
  rmSync(compiled, { recursive: true, force: true })
}

/** Puts a folder of a tag into `sources`. */
function extract(repository: string, tag: string, folder: string): void {
  let bare = repository
  if (repository.includes('://')) {
    bare = join(sources, basename(repository))
    execFileSync('git', ['clone', '--quiet', '--bare', '--depth', '1', '--branch', tag, repository, bare])
  }
  const archive = execFileSync('git', ['-C', bare, 'archive', tag, folder], { maxBuffer: 2 ** 28 })
  execFileSync('tar', ['-x', '-C', sources], { input: archive })
}

function compile(folder: string): void {
  const compilerOptions = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext }
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    if (!name.endsWith('.ts')) continue
    const { outputText } = ts.transpileModule(readFileSync(join(folder, name), 'utf8'), { compilerOptions })
    const target = join(compiled, name.replace(/ts$/, 'js'))
    mkdirSync(join(target, '..'), { recursive: true })
    writeFileSync(target, outputText)
  }
}
