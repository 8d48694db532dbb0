/** Signs that a connection of the first phase, which native code is about to read, may become fast. */
import type { Socket } from 'node:net'
import { hashedPorts } from '../bootstrap/hashed-port.ts'
import { isOfThisHost } from '../bootstrap/held-probe.ts'
import { isListened } from '../host/kernel-sockets.ts'

/** After so many connections in a row without a relinked client, servers accept with Node's own handle. */
export const STRANGERS_MAX = 4
let acceptedCount = 0

/** Servers cannot know of their first clients whether they are relinked. */
export function mayMoveEarly(socket: Socket): boolean {
  const { _handle: handle, server } = socket as Socket & { _handle: object | null; server?: object | null }
  const { name } = handle?.constructor ?? {}
  const isPath = name === 'Pipe'
  // http2 over TLS has the handle of TLS.
  if (!isPath && (name !== 'TCP' || !isOfThisHost(socket))) return false
  if (server) return acceptedCount++ < STRANGERS_MAX
  return !isPath && isListened(hashedPorts(socket.remotePort as number)) === true
}
