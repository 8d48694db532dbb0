/**
 * In the first phase: whether the listener of a silent connection holds it (promotion/held-connections.ts). Its greeting at the
 * hashed port says so; a server without one is only slow.
 */
import type { Socket } from 'node:net'
import { makeHidden } from '../../nic/own-resources.ts'
import { isOwn, newOwnSocket } from '../../nic/own-sockets.ts'
import { decodeIntroduction, GREETING_MAGIC, INTRODUCTION_SIZE } from '../bootstrap/bootstrap-layout.ts'
import { hashedPort } from '../bootstrap/hashed-port.ts'

/** Calls for one destination, and destinations. */
const CALLS_MAX = 6
const DESTINATIONS_MAX = 64
const TIMEOUT_MS = 1000

const callCounts = new Map<string, number>()

/** Looks at open sockets of this thread. Calls `onHeld` if a listener requires its connections to be fast. */
export function probeForHolding(sockets: readonly Socket[], onHeld: () => void): void {
  for (const socket of sockets) {
    // A pipe, as standard output may be. To ask for its addresses would load the rest (bridge-names.ts).
    if (socket.bytesRead > 0 || !isOverTcp(socket)) continue
    const { remoteAddress, remotePort } = socket
    if (remoteAddress === undefined || remotePort === undefined) continue
    if (isOwn(socket) || (socket as { server?: unknown }).server || !isOfThisHost(socket)) continue
    const key = `${remoteAddress} ${remotePort}`
    const count = callCounts.get(key) ?? 0
    if (count >= CALLS_MAX || (count === 0 && callCounts.size >= DESTINATIONS_MAX)) continue
    callCounts.set(key, count + 1)
    call(remoteAddress, remotePort, onHeld)
  }
}

function isOverTcp(socket: Socket): boolean {
  return (socket as { _handle?: { getpeername?: unknown } | null })._handle?.getpeername !== undefined
}

function isOfThisHost({ remoteAddress, localAddress }: Socket): boolean {
  return remoteAddress === localAddress || remoteAddress?.startsWith('127.') === true
}

function call(host: string, port: number, onHeld: () => void): void {
  makeHidden(() => {
    const caller = newOwnSocket()
    let greeting = Buffer.alloc(0)
    caller.on('error', () => caller.destroy())
    caller.on('data', bytes => {
      greeting = Buffer.concat([greeting, bytes])
      if (greeting.length < INTRODUCTION_SIZE) return
      caller.destroy()
      if (decodeIntroduction(GREETING_MAGIC, greeting)?.isRequired) onHeld()
    })
    caller.setTimeout(TIMEOUT_MS, () => caller.destroy())
    caller.connect(hashedPort(port, 0), host)
    // After connect(): before, the socket would be referenced until it is connected, and open-handle detectors would list it.
    caller.unref()
  })
}
