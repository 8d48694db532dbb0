/**
 * To construct a socket is to copy its options. V8 of Node 20 makes hidden classes for each copy, which no cache knows, until
 * it is taught otherwise; V8 itself tells here how often its caches were of no use.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Child } from '../support/child.ts'
import { program, relinked } from '../support/relinked.ts'

const COUNT = 2000
/** One of the options that the constructors ask for. */
const MISS = /^LoadIC,.*,captureRejections,/gm

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
      t.strictSame(await child.receive(), { constructed: COUNT })
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
