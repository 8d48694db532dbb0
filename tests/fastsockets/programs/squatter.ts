/**
 * A squatter, not relinked. argv: what it does, the port or the unix key of the true listener, and for `known` the port of another.
 *
 *   relay      has the first hashed port, and carries every byte to and fro between its callers and the true bootstrap
 *   door       the same, but what it greets with names a door of its own
 *   flags, endpoint, listener      the same with that part of the greeting changed
 *   known      has the first hashed port, and greets with the greeting of another server
 *   silent     has the first hashed port, and says nothing
 *   shadow     has the abstract name at which a unix listener's clients look for it, and greets with a greeting of its own
 *
 * Asked, it says what it has heard. Told to, it ends all that it carries.
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import net from 'node:net'
import {
  decodeIntroduction,
  encodeIntroduction,
  GREETING_MAGIC,
  INTRODUCTION_SIZE,
  type Introduction,
  VERSION,
} from '../../../fastsockets/bootstrap/bootstrap-layout.ts'
import { doorPath } from '../../../fastsockets/bootstrap/door.ts'
import { CANDIDATE_COUNT, hashedPort } from '../../../fastsockets/bootstrap/hashed-port.ts'
import { shadowName } from '../../../fastsockets/host/unix-paths.ts'
import { hostIdentity } from '../../../nic/index.ts'

const HOST = '127.0.0.1'
const [what = 'relay', target = '', other = ''] = process.argv.slice(2)
const port = Number(target)
const carried: net.Socket[] = []
const counts = { callers: 0, heard: 0, atDoor: 0 }
const ownDoor = randomBytes(16)

function keep(socket: net.Socket): net.Socket {
  carried.push(socket)
  return socket.on('error', () => {})
}

/** A connection to a true bootstrap, at whichever candidate it is. */
async function callTrueOne(of = port, first = 1): Promise<net.Socket> {
  for (let candidate = first; candidate < CANDIDATE_COUNT; candidate++) {
    const socket = keep(net.connect(hashedPort(of, candidate), HOST))
    const isThere = await once(socket, 'connect').then(
      () => true,
      () => false,
    )
    if (isThere) return socket
  }
  throw new Error('the true bootstrap is nowhere')
}

async function greetingOf(server: net.Socket): Promise<Introduction> {
  let bytes = Buffer.alloc(0)
  for await (const chunk of server) {
    bytes = Buffer.concat([bytes, chunk])
    if (bytes.length >= INTRODUCTION_SIZE) break
  }
  return decodeIntroduction(GREETING_MAGIC, bytes.subarray(0, INTRODUCTION_SIZE)) as Introduction
}

/** What the true bootstrap greets with. */
let learnt: Introduction | undefined

const CHANGES: Readonly<Record<string, () => Partial<Introduction>>> = {
  door: () => ({ door: ownDoor, uid: 0 }),
  flags: () => ({ isShared: true }),
  endpoint: () => ({ endpointId: randomBytes(16) }),
  listener: () => ({ listenerId: randomBytes(16) }),
  known: () => ({ port }),
}

async function serve(caller: net.Socket): Promise<void> {
  counts.callers++
  keep(caller).on('data', bytes => {
    counts.heard += bytes.length
  })
  if (what === 'shadow') {
    const ids = { endpointId: randomBytes(16), door: ownDoor, listenerId: randomBytes(16) }
    const rest = {
      version: VERSION,
      port: 0,
      isShared: false,
      isRequired: false,
      uid: 0,
      pid: 1,
      hostIdentity: hostIdentity(),
    }
    caller.write(encodeIntroduction(GREETING_MAGIC, { ...ids, ...rest }))
    return
  }
  if (what === 'relay') {
    const server = await callTrueOne()
    server.pipe(caller)
    caller.pipe(server)
  } else if (learnt !== undefined && what !== 'silent') {
    // At once: a client that waits looks at the next hashed port.
    caller.write(encodeIntroduction(GREETING_MAGIC, { ...learnt, ...CHANGES[what]?.() }))
  }
}

const door = net.createServer(caller => {
  keep(caller).on('data', bytes => {
    counts.atDoor += bytes.length
  })
})
door.listen({ path: doorPath(ownDoor) })
const squatted = net.createServer(caller => void serve(caller))
squatted.listen(what === 'shadow' ? { path: shadowName(target) } : { port: hashedPort(port, 0), host: HOST })
await once(squatted, 'listening')
process.on('message', async ({ end, learn }: { end?: boolean; learn?: boolean }) => {
  if (learn) learnt = await greetingOf(await (other === '' ? callTrueOne() : callTrueOne(Number(other), 0)))
  if (end) for (const socket of carried) socket.destroy()
  process.send?.(counts)
})
process.on('disconnect', () => process.exit())
process.send?.({ isThere: true })
