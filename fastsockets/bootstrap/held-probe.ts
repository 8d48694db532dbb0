/**
 * Whether the listener of a silent connection holds it (promotion/held-connections.ts). Its greeting at the hashed port says so; a
 * server without one is only slow. A server that has loaded nothing holds none, and loads nothing for this question.
 */
import type { Socket } from 'node:net'
import { makeHidden } from '../../nic/own-resources.ts'
import { isOwn, newOwnSocket } from '../../nic/own-sockets.ts'
import { decodeIntroduction, GREETING_MAGIC, isEarly, mayBe } from './bootstrap-layout.ts'
import { hashedPorts } from './hashed-port.ts'

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
    askWhetherHeld(remoteAddress, remotePort, onHeld)
  }
}

function isOverTcp(socket: Socket): boolean {
  return (socket as { _handle?: { getpeername?: unknown } | null })._handle?.getpeername !== undefined
}

/** Whether both ends of a connection over TCP are addresses of one host. */
export function isOfThisHost({ remoteAddress, localAddress }: Socket): boolean {
  return remoteAddress !== undefined && (remoteAddress === localAddress || isLoopback(remoteAddress))
}

function isLoopback(address: string): boolean {
  return address.replace('::ffff:', '').startsWith('127.')
}

/** Calls `onHeld` if the listener on `port` requires its connections to be fast. */
export function askWhetherHeld(host: string, port: number, onHeld: () => void, candidate = 0): void {
  const hashed = hashedPorts(port)[candidate]
  if (hashed === undefined) return
  makeHidden(() => {
    const caller = newOwnSocket()
    let received = Buffer.alloc(0)
    let isAnswered = false
    caller.on('error', () => caller.destroy())
    caller.on('data', bytes => {
      received = Buffer.concat([received, bytes])
      const greeting = decodeIntroduction(GREETING_MAGIC, received)
      isAnswered = greeting?.port === port || isEarly(received, port)
      if (isAnswered || greeting !== undefined || !mayBe(GREETING_MAGIC, received)) caller.destroy()
      if (isAnswered && greeting?.isRequired) onHeld()
    })
    caller.on('close', () => {
      if (!isAnswered) askWhetherHeld(host, port, onHeld, candidate + 1)
    })
    caller.setTimeout(TIMEOUT_MS, () => caller.destroy())
    caller.connect(hashed, host)
    // After connect(): before, the socket would be referenced until it is connected, and open-handle detectors would list it.
    caller.unref()
  })
}
