/**
 * To construct a socket is to copy its options. V8 of Node 20 makes hidden classes for each copy, which no cache knows, until
 * it is taught otherwise, and so it does for what programs spread; V8 itself tells here how often its caches were of no use.
 */
import { readFileSync } from 'node:fs'
import net from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { copyOptions } from '../../fastsockets/host/copied-options.ts'
import { Child } from '../support/child.ts'
import { program, relinked } from '../support/relinked.ts'

const COUNT = 2000
/** One of the options that the constructors ask for. */
const MISS = /^LoadIC,.*,captureRejections,/gm
/** One of those that `connect` asks for. */
const MISS_OF_CONNECT = /^LoadIC,.*,autoSelectFamily,/gm

t.test(
  'sockets that a relinked server and its client construct find what they look for in caches',
  async t => {
    const folder = t.testdir()
    const logs = ['server', 'client'].map(name => join(folder, `${name}.log`))
    const [server, client] = logs.map(log =>
      relinked({ execArgv: ['--log-ic', `--logfile=${log}`, '--no-logfile-per-isolate'] }),
    )
    const listening = new Child(t, program('copied-options'), [], server)
    const { port } = await listening.receive<{ port: number }>()
    const connecting = new Child(t, program('copied-options'), [String(port)], client)
    await connecting.receive()
    for (const child of [listening, connecting]) {
      child.send({ count: COUNT })
      t.strictSame(await child.receive(), { done: COUNT })
      child.process.kill('SIGTERM')
      await child.exited
    }
    for (const log of logs) {
      const text = readFileSync(log, 'latin1')
      const misses = text.match(MISS)?.length ?? 0
      t.ok(misses > 0, 'V8 tells of the first ones')
      t.ok(misses < COUNT / 10, 'hardly ever')
    }
  },
)

t.test('a client that spreads its options for a server that is not relinked', async t => {
  const server = new Child(t, program('copied-options'), [])
  const { port } = await server.receive<{ port: number }>()
  const log = join(t.testdir(), 'client.log')
  const options = { execArgv: ['--log-ic', `--logfile=${log}`, '--no-logfile-per-isolate'] }
  const client = new Child(t, program('copied-options'), [String(port)], relinked(options))
  await client.receive()
  client.send({ count: COUNT, isSpread: true })
  t.strictSame(await client.receive(), { done: COUNT })
  client.process.kill('SIGTERM')
  await client.exited
  const misses = readFileSync(log, 'latin1').match(MISS_OF_CONNECT)?.length ?? 0
  t.ok(misses > 0, 'V8 tells of the first ones')
  t.ok(misses < COUNT / 10, `hardly ever: ${misses}`)
})

t.test('what a connect is given is copied if it is plain', async t => {
  const isForgetful = process.versions.v8.startsWith('11.')
  const options = { host: '127.0.0.1', port: 8080, [Symbol('own')]: 1 }
  const listener = (): void => {}

  const args: unknown[] = [options, listener]
  copyOptions(args)
  t.strictSame(args, [options, listener])
  t.equal(args[0] !== options, isForgetful, 'a copy where V8 forgets')

  const { _normalizeArgs } = net as unknown as { _normalizeArgs(args: unknown[]): unknown[] }
  const ordered = _normalizeArgs([options, listener])
  copyOptions([ordered])
  t.strictSame([...ordered], [options, listener])
  t.equal(ordered[0] !== options, isForgetful, "in Node's own list")

  class Options {
    readonly port = 8080
  }
  for (const [name, given] of Object.entries({
    'of a class': new Options(),
    'without a prototype': { __proto__: null, ...options },
    inherited: Object.create(options) as object,
    'a proxy': new Proxy(options, {}),
    "a list of somebody's": [options],
    'a port': 8080,
    'a path': '/a/path',
    nothing: undefined,
    null: null,
  })) {
    const args: unknown[] = [given]
    copyOptions(args)
    t.equal(args[0], given, name)
  }
  const list = [options]
  copyOptions([list])
  t.equal(list[0], options, "what is in somebody's list is not touched")
  const none: unknown[] = []
  copyOptions(none)
  t.strictSame(none, [])
})
