/** A relinked program lives exactly as long as a plain one, and costs nothing while nothing happens. */
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { Child } from '../support/child.ts'
import { program, relinked } from '../support/relinked.ts'

const IDLE_MS = 3000
const WINDOWS_MAX = 6
/** For both processes together: half a thousandth of a core. */
const IDLE_CPU_MAX_MS = 1.5
const CLOCK_TICKS_PER_SECOND = 100

for (const mode of ['plain', 'relinked']) {
  const options = mode === 'relinked' ? relinked() : {}

  t.test(`${mode}: a client that unrefs its only socket ends`, async t => {
    const server = new Child(t, program('server'), ['echo'], options)
    const { port } = await server.receive<{ port: number }>()
    const client = new Child(t, program('client'), [String(port), 'unref'], options)
    t.match(await client.end(), { code: 0 })
  })

  t.test(`${mode}: a program ends when both ends of its only connection are closed`, async t => {
    const script = new Child(t, program('in-process'), ['close'], options)
    t.match(await script.end(), { code: 0 })
  })

  t.test(`${mode}: a program with an open connection lives on, also within one process`, async t => {
    const script = new Child(t, program('in-process'), ['stay'], options)
    await script.receive()
    await sleep(300)
    t.equal(script.process.exitCode, null)
  })
}

t.test('an idle relinked pair with an open connection uses no CPU', async t => {
  const server = new Child(t, program('server'), ['echo'], relinked())
  const { port } = await server.receive<{ port: number }>()
  const client = new Child(t, program('client'), [String(port)], relinked())
  t.match(await client.receive(), { connected: 'shm' })
  // V8 compacts the heap once, some 8 s after a program has started, relinked or not: a window without that counts.
  let usedMs = Number.POSITIVE_INFINITY
  for (let window = 0; window < WINDOWS_MAX && usedMs >= IDLE_CPU_MAX_MS; window++) {
    const before = cpuMs(server.pid) + cpuMs(client.pid)
    await sleep(IDLE_MS)
    usedMs = cpuMs(server.pid) + cpuMs(client.pid) - before
  }
  t.ok(usedMs < IDLE_CPU_MAX_MS, `${usedMs.toFixed(2)} ms of CPU in ${IDLE_MS / 1000} s`)
})

/** CPU time of all threads so far; from the scheduler's nanoseconds, as /proc/PID/stat counts only whole ticks. */
function cpuMs(pid: number): number {
  try {
    const [nanoseconds] = readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')
    return Number(nanoseconds) / 1e6
  } catch {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
    return ((Number(fields[11]) + Number(fields[12])) * 1000) / CLOCK_TICKS_PER_SECOND
  }
}
