/** The package as a user gets it: packed, installed into an empty folder without install scripts (application.ts), used both ways. */
import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Test } from 'tap'
import { plainEnvironment } from '../support/child.ts'
import { type Application, CHECKOUT } from './application.ts'

const run = promisify(execFile)

/** Talks to itself in two processes and prints the wire. */
const PAIR = `
const { fork } = require('node:child_process')
if (process.argv[2] === 'client') {
  const socket = net.connect(Number(process.argv[3]), '127.0.0.1', () => socket.end('hello'))
  socket.on('data', data => console.log(String(data), transportOf(socket).transport))
} else {
  const server = net.createServer(socket => socket.pipe(socket)).listen(0, '127.0.0.1', () => {
    fork(__filename, ['client', server.address().port]).on('exit', () => server.close())
  })
}
`

/** Programs, and the compiler, in a folder of the application. */
export async function tryPackage(t: Test, { folder: home, packaged }: Application): Promise<void> {
  const folder = join(home, 'tried')
  const bin = join(home, 'node_modules/.bin/fastsockets')
  mkdirSync(folder)
  const at = { cwd: folder, env: plainEnvironment() }
  const node = async (...args: string[]) => (await run(process.execPath, args, at)).stdout.trim()
  t.notOk(
    [...packaged].some(path => path.startsWith('dist/tests/')),
    'tests stay at home',
  )
  writeFileSync(
    join(folder, 'required.cjs'),
    `const net = require('fastsockets')\nconst { transportOf } = net\n${PAIR}`,
  )
  t.equal(await node('required.cjs'), 'hello shm', "require('fastsockets')")
  writeFileSync(
    join(folder, 'imported.mjs'),
    `import net, { transportOf, connect } from 'fastsockets'
import nodeNet from 'node:net'
import { createRequire } from 'node:module'
const require = createRequire(import.meta.url), __filename = import.meta.filename ?? process.argv[1]
if (connect !== nodeNet.connect || net.Socket !== nodeNet.Socket) throw new Error('not the same exports')
for (const name of Object.keys(nodeNet)) if (!(name in net)) throw new Error('missing ' + name)
${PAIR}`,
  )
  t.equal(await node('imported.mjs'), 'hello shm', "import net from 'fastsockets'")

  // An unmodified program knows no transportOf: ask beside it.
  writeFileSync(
    join(folder, 'witness.cjs'),
    "globalThis.net = require('node:net'); globalThis.transportOf = require('fastsockets').transportOf",
  )
  writeFileSync(join(folder, 'unmodified.cjs'), PAIR)
  for (const preload of [
    ['--import', 'fastsockets/register'],
    ['--require', 'fastsockets/register'],
  ]) {
    t.equal(
      await node(...preload, '--require', './witness.cjs', 'unmodified.cjs'),
      'hello shm',
      preload.join(' '),
    )
  }

  for (const part of ['am', 'rpc', 'nic', 'nameservice', 'raw', 'metrics']) {
    const names = await node(
      '--input-type=module',
      '-e',
      `console.log(Object.keys(await import('fastsockets/${part}')).length)`,
    )
    t.ok(Number(names) > 0, `fastsockets/${part}`)
  }
  await t.test('require and import of each entry point give the same objects', async t => {
    for (const part of ['', '/am', '/rpc', '/nic', '/nameservice', '/raw', '/metrics']) {
      const script = `const required = require('fastsockets${part}')
import('fastsockets${part}').then(all => {
  const names = Object.keys(all).filter(name => !['default', 'module.exports'].includes(name))
  console.log(names.length > 0, names.filter(name => all[name] !== required[name]))
})`
      t.equal(await node('-e', script), 'true []', `fastsockets${part}`)
    }
  })
  await t.test('of two copies the first relinks, and both know its wires', async t => {
    cpSync(join(home, 'node_modules/fastsockets'), join(folder, 'other'), { recursive: true })
    const second = `const net = require('./other/dist/fastsockets/index.cjs')\nconst { transportOf } = net\n${PAIR}`
    writeFileSync(join(folder, 'second.cjs'), second)
    const preload = ['--import', 'fastsockets/register', 'second.cjs']
    t.equal(await node(...preload), 'hello shm')
    const manifest = JSON.parse(readFileSync(join(folder, 'other/package.json'), 'utf8'))
    writeFileSync(join(folder, 'other/package.json'), JSON.stringify({ ...manifest, version: '0.0.1' }))
    const { stderr, stdout } = await run(process.execPath, preload, at)
    t.equal(stdout.trim(), 'hello shm')
    t.match(stderr, /FASTSOCKETS_TWO_VERSIONS.*0\.0\.1, which was loaded later/)
  })
  // As Node itself finds them: writeTypedPrograms.
  await t.test(
    'types for every other way in which a compiler finds modules, without skipLibCheck',
    async t => {
      const names = `import { connect } from 'fastsockets/raw'
import { Endpoint, openEndpoint } from 'fastsockets/am'
import { NameClient } from 'fastsockets/nameservice'
import { serve } from 'fastsockets/rpc'
import type { Socket, Transport } from 'fastsockets'
import 'fastsockets/register'
export const all = [connect, openEndpoint, Endpoint, NameClient, serve]
export const text = (of: Transport): string => (of.reason === undefined ? of.transport : of.reason.code)
export let socket: Socket | undefined
`
      writeFileSync(
        join(folder, 'common.ts'),
        `import net = require('fastsockets')\n${names}net.connect(1)\n`,
      )
      writeFileSync(join(folder, 'module.mts'), `import net from 'fastsockets'\n${names}net.connect(1)\n`)
      for (const [module, resolution, ...sources] of [
        ['commonjs', 'node10', 'common.ts'],
        ['preserve', 'bundler', 'module.mts'],
      ] as const) {
        const modes = ['--module', module, '--moduleResolution', resolution]
        const roots = ['--types', 'node', '--typeRoots', join(CHECKOUT, 'node_modules/@types')]
        const flags = ['--noEmit', '--strict', '--skipDefaultLibCheck', '--target', 'es2022']
        const tsc = join(CHECKOUT, 'node_modules/typescript/bin/tsc')
        const { stdout } = await run(
          process.execPath,
          [tsc, ...flags, ...modes, ...roots, ...sources],
          at,
        ).catch((error: { stdout: string }) => error)
        t.equal(stdout, '', resolution)
      }
    },
  )
  const { stdout } = await run(bin, ['--help'], at)
  t.match(stdout, /run.*doctor.*demo/s, 'the bin')
  await t.test('the bench works, and names what is missing', async t => {
    // Whatever lies in folders above this one is not installed here.
    const contestants = ['--contestants', 'c-limit,zeromq-ipc']
    const bench = ['bench', 'pingpong', 'micro', '--quick', '--rounds', '1', '--json', ...contestants]
    const { stdout, stderr } = await run(bin, bench, at)
    t.match(stderr, /^some rows .*: npm install (benchmark zeromq|zeromq benchmark)$/m, 'all at a time')
    const { results, skipped } = JSON.parse(stdout)
    const measured = new Set(results.map(({ contestant }: { contestant: string }) => contestant))
    t.ok(measured.has('net-tcp'), 'plain node:net')
    const reasons = skipped
      .filter(({ contestant }: { contestant: string }) => contestant === 'c-limit')
      .map(({ reason }: { reason: string }) => reason)
    // Its source in C came along, so that only a compiler may be missing.
    const reason = measured.has('c-limit')
      ? 'it carries messages of up to 64 B only'
      : 'there is no C compiler (cc)'
    t.strictSame(reasons, [reason])
    const reasonOf = (name: string) =>
      skipped.find(({ contestant }: { contestant: string }) => contestant === name)?.reason
    t.match(reasonOf('zeromq-ipc'), /package zeromq is not installed: npm install/)
  })
}

/** Writes programs in TypeScript, which find the types of node:net, and ours; returns their files. */
export function writeTypedPrograms({ folder: home }: Application): string[] {
  const folder = join(home, 'typed')
  mkdirSync(folder)
  const body = `
const server: net.Server = net.createServer((socket: net.Socket) => {
  const { transport, reason }: net.Transport = net.transportOf(socket)
  const code: net.FallbackCode | undefined = reason?.code
  console.log(transport, code, net.FALLBACK_REASONS.POLICY)
})
class Mine extends net.Socket {}
const options: net.TcpNetConnectOpts = { port: (server.address() as net.AddressInfo).port }
new Mine().connect(options).on('error', error => error instanceof net.RequiredError)
`
  const named = `import type { Socket } from 'fastsockets'
import { CompletionQueue, connect, listen, type RawServer, type RawSocket } from 'fastsockets/raw'
import { openEndpoint } from 'fastsockets/am'
import { registerMetrics } from 'fastsockets/metrics'
import { NameClient } from 'fastsockets/nameservice'
import { serve } from 'fastsockets/rpc'
import 'fastsockets/register'
export const all: [Socket?, RawServer?, RawSocket?] = []
console.log(CompletionQueue, connect, listen, openEndpoint, registerMetrics, NameClient, serve)
`
  writeFileSync(join(folder, 'imported.mts'), `import net from 'fastsockets'\n${body}\n${named}`)
  writeFileSync(join(folder, 'all.mts'), `import * as net from 'fastsockets'\n${body}`)
  writeFileSync(join(folder, 'required.cts'), `import net = require('fastsockets')\n${body}`)
  writeFileSync(join(folder, 'interop.cts'), `import net from 'fastsockets'\n${body}\n${named}`)
  return ['imported.mts', 'all.mts', 'required.cts', 'interop.cts'].map(name => join(folder, name))
}
