/**
 * Both of two hosts. `serve`: echoes until the client is done with it, with a name service beside it. `call`: connects to
 * the server by its hashed port, over and over until it is there, and checks what it gets; WIRE says which wire it must be.
 */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import net, { type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { transportOf } from '../../../fastsockets/index.ts'
import { describeDevice } from '../../../nic/index.ts'
import { patternedMiB } from '../patterned.ts'

const SERVER = '10.78.0.1'
const PORT = 7000
const MIB_COUNT = 4
const ATTEMPT_PAUSE_MS = 500
const ATTEMPT_MS_MAX = 10_000
const ATTEMPTS_MAX = 100

function serve(): void {
  console.log(`# serving, device: ${describeDevice() ?? 'none'}`)
  const server = net.createServer(socket => {
    socket.on('error', () => {})
    socket.once('data', first => {
      if (first[0] !== 0x65) {
        console.log('# the client is done')
        process.exit()
      }
      socket.write(first)
      socket.pipe(socket)
    })
  })
  server.listen(PORT, '0.0.0.0')
}

async function call(): Promise<void> {
  console.log(`# calling, device: ${describeDevice() ?? 'none'}`)
  const socket = await dial()
  const wire = transportOf(socket)
  console.log(`# ${JSON.stringify(wire)}`)
  check(`the wire is ${process.env.WIRE}`, wire.transport === process.env.WIRE)
  if (process.env.REASON)
    check(`the reason is ${process.env.REASON}`, wire.reason?.code === process.env.REASON)
  check(
    'the addresses are those of the wire',
    socket.remoteAddress === SERVER && socket.localAddress !== SERVER,
  )
  check('what was sent comes back', await isEchoed(socket))
  socket.destroy()
  if (!process.env.LAST) return
  const last = await dial()
  last.write('q')
  await once(last, 'close')
}

/** The server may not be there yet. */
async function dial(): Promise<Socket> {
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    const socket = net.connect(PORT, SERVER)
    try {
      await once(socket, 'connect', { signal: AbortSignal.timeout(ATTEMPT_MS_MAX) })
      socket.on('error', () => {})
      return socket
    } catch {
      socket.destroy()
      await pause(ATTEMPT_PAUSE_MS)
    }
  }
  throw new Error(`nobody answers at ${SERVER}`)
}

async function isEchoed(socket: Socket): Promise<boolean> {
  const expected = createHash('sha256')
  const received = createHash('sha256')
  let left = MIB_COUNT * 1024 * 1024 + 1
  const isBack = new Promise<void>(resolve => {
    socket.on('data', bytes => {
      received.update(bytes)
      left -= bytes.length
      if (left <= 0) resolve()
    })
  })
  expected.update('e')
  socket.write('e')
  for (let i = 0; i < MIB_COUNT; i++) {
    const bytes = patternedMiB(i)
    expected.update(bytes)
    if (!socket.write(bytes)) await once(socket, 'drain')
  }
  await isBack
  return expected.digest('hex') === received.digest('hex')
}

function check(what: string, holds: boolean): void {
  console.log(`${holds ? 'ok' : 'not ok'} - ${what}`)
  if (!holds) process.exitCode = 1
}

if (process.argv[2] === 'serve') serve()
else await call()
