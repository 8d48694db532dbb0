/** The same connections end the same way, plain and relinked: which event, which error, and in which order. */
import { once } from 'node:events'
import t from 'tap'
import net, { transportOf } from '../../fastsockets/index.ts'
import { Child } from '../support/child.ts'
import { program, relinked } from '../support/relinked.ts'
import { startsFast } from '../support/start-mode.ts'

/** Each is a scenario in programs/endings.ts. */
const SCENARIOS: Readonly<Record<string, string>> = {
  finish: "'prefinish' and 'finish' come when what the program does now is over",
  bareEnd: 'so they do if there was nothing to write',
  writeAfterReset: 'a write fails with the reset that has come and was not heard of',
  pausedReset:
    'who does not read does not hear of a reset, and who reads late what came before it is told that it is the end',
  pausedWriter: 'a waiting write fails if the program does not read',
  unreadWriter: 'also with bytes unread',
  ownMemory: 'each piece of data has memory of its own, which may be transferred',
  smallerBuffers: 'a program that reads into smaller and smaller buffers is asked after each',
  tlsWriter: 'a TLS socket that writes to a peer that goes gets one error, and nothing after its close',
  unreadOnTheWay: 'data on its way to a closed socket makes it a reset',
  tlsReset: "a TLS socket that is idle hears of a reset by 'error', and its 'close' says so",
  failedWrites: 'bytes of a write that fails are counted, but not those of a short string',
  timeoutAfterWrite: 'a socket is idle for one period, and no longer, after a write that had to wait',
  resetOnPath: 'neither end of a unix path can be reset, and both can be used as before',
  throwingCloses: "listeners of 'close' that throw keep no other socket from closing in the same turn",
  throwingWrite: "nor does the callback of a write that is given up keep its socket from 'close'",
}

for (const [scenario, name] of Object.entries(SCENARIOS)) {
  t.test(name, async t => {
    const logs: unknown[] = []
    for (const options of [{}, relinked()]) {
      const child = new Child(t, program('endings'), [scenario], options)
      logs.push(await child.receive())
      await child.end()
    }
    const [plain, fast] = logs as { transport: string; log: string[] }[]
    t.equal(plain?.transport, 'tcp')
    if (startsFast) t.equal(fast?.transport, 'loopback')
    t.ok((plain?.log.length ?? 0) > 0, 'something happened')
    t.same(fast?.log, plain?.log)
    t.comment(plain?.log.join(', '))
  })
}

t.test('who hears that a process has ended has heard that its connections have', async t => {
  for (let round = 0; round < 5; round++) {
    const server = new Child(t, program('server'), ['echo'], relinked())
    const { port } = await server.receive<{ port: number }>()
    const socket = net.connect(port, '127.0.0.1')
    socket.on('error', () => {})
    socket.write('hello')
    await once(socket, 'data')
    if (startsFast) t.equal(transportOf(socket).transport, 'shm')
    const seen: string[] = []
    socket.on('end', () => seen.push('end'))
    const exited = once(server.process, 'exit')
    server.process.kill('SIGKILL')
    // The event loop finds both ends in one look.
    if (round % 2 === 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200)
    await exited
    t.strictSame(seen, ['end'])
    socket.destroy()
  }
})
