/**
 * A client that tries again until its server listens is fast from its first connection on, although the server opens its
 * hashed port some time after its own port.
 */
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import net, { type NetConnectOpts, type Transport, transportOf } from '../../fastsockets/index.ts'
import * as raw from '../../fastsockets/raw/index.ts'
import { Child, plainEnvironment } from '../support/child.ts'
import { freePort } from '../support/ports.ts'
import { program, relinked } from '../support/relinked.ts'
import { withWatchdog } from '../support/until.ts'

const PAUSE_MS = 1
const ATTEMPTS = 5

interface Met {
  readonly refused: number
  readonly transport: Transport
}

/** Connects until it is accepted. */
async function connectInALoop(place: NetConnectOpts): Promise<Met> {
  for (let refused = 0; ; refused++) {
    const socket = net.connect(place)
    try {
      await once(socket, 'connect')
      const transport = transportOf(socket)
      socket.destroy()
      return { refused, transport }
    } catch (error) {
      const { code = '' } = error as NodeJS.ErrnoException
      if (!['ECONNREFUSED', 'ENOENT'].includes(code)) throw error
    }
    await delay(PAUSE_MS)
  }
}

async function connectRawInALoop(port: number): Promise<Met> {
  for (let refused = 0; ; refused++) {
    try {
      const socket = await raw.connect({ port, host: '127.0.0.1' })
      const { transport } = socket
      socket.close()
      return { refused, transport }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ECONNREFUSED') throw error
    }
    await delay(PAUSE_MS)
  }
}

function startLate(t: Test, place: string): Child {
  const late = ['--import', program('late-hashed-port').href]
  const env = { ...plainEnvironment(), LATE_PLACE: place }
  return new Child(t, program('place-server'), [place], relinked({ execArgv: late, env }))
}

/** On a busy machine the hashed port may come later than a client waits for it; then it is TCP, rightly. */
async function meetFast(t: Test, meet: () => Promise<Met>): Promise<Met> {
  let met = await meet()
  for (let i = 1; i < ATTEMPTS && met.transport.transport !== 'shm'; i++) met = await meet()
  t.match(met, { transport: { transport: 'shm', reason: undefined } })
  return met
}

t.test('at a port', async t => {
  const { refused } = await meetFast(t, async () => {
    const port = await freePort()
    const met = connectInALoop({ port, host: '127.0.0.1' })
    await startLate(t, String(port)).receive()
    return met
  })
  t.ok(refused > 1, `after ${refused} refusals`)
})

t.test('by a name of several addresses', t =>
  meetFast(t, async () => {
    const port = await freePort()
    const met = connectInALoop({ port, host: 'localhost' })
    await startLate(t, String(port)).receive()
    return met
  }),
)

t.test('at a unix path', async t => {
  let count = 0
  const folder = t.testdir()
  await meetFast(t, async () => {
    const path = join(folder, `late-${count++}.sock`)
    const met = connectInALoop({ path })
    await startLate(t, path).receive()
    return met
  })
})

t.test('a raw socket', t =>
  meetFast(t, async () => {
    const port = await freePort()
    const met = connectRawInALoop(port)
    await startLate(t, String(port)).receive()
    return met
  }),
)

t.test('a server that is not relinked gets its connection over TCP', async t => {
  const port = await freePort()
  const met = connectInALoop({ port, host: '127.0.0.1' })
  await new Child(t, program('place-server'), [String(port)]).receive()
  t.match(await withWatchdog('the plain server', met), {
    transport: { transport: 'tcp', reason: { code: 'NOT_RELINKED' } },
  })
})
