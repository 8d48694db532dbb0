/**
 * Hashed ports of listeners in the first phase of a program (relink/light-phase.ts). Each is a bound, listening handle. The first
 * client that calls makes it load early-callers.ts. The bootstrap server, once loaded, takes the handle over.
 */
import { createRequire } from 'node:module'
import net, { type Server, type Socket } from 'node:net'
import { makeHidden } from '../../nic/own-resources.ts'
import { setImmediate } from '../../nic/real-time.ts'
import type { TcpHandle } from '../host/node-internals.ts'
import { tryLoad } from '../host/try-load.ts'
import { hashedPorts } from './hashed-port.ts'

const require = createRequire(import.meta.url)

/** Like that of Node's servers. */
const BACKLOG = 511

type CreateServerHandle = (
  address: string,
  port: number,
  family: number,
  fd: undefined,
  flags: unknown,
) => TcpHandle | number
const { _createServerHandle } = net as unknown as { _createServerHandle?: CreateServerHandle }

export class EarlyPort {
  readonly handle: TcpHandle
  readonly port: number
  readonly server: Server
  /** They wait for the rest of their greeting. */
  readonly callers = new Set<Socket>()
  #greet: ((caller: Socket) => void) | undefined

  constructor(handle: TcpHandle, port: number, server: Server) {
    this.handle = handle
    this.port = port
    this.server = server
  }

  /** Greets the caller, at once or once there is a bootstrap server. */
  greet(caller: Socket): void {
    if (this.#greet === undefined) this.callers.add(caller)
    else this.#greet(caller)
  }

  greetBy(greet: (caller: Socket) => void): void {
    this.#greet = greet
    for (const caller of this.callers) greet(caller)
    this.callers.clear()
  }

  close(): void {
    this.handle.close()
    for (const caller of this.callers) caller.destroy()
  }
}

/** By the address and port of the listener. */
const early = new Map<string, EarlyPort>()

/** Of a server that listens. `flags`: those of its bind. Calls `load` if a caller needs what is not loaded. False if it can have none. */
export function openEarlyPort(server: Server, flags: unknown, load: () => void): boolean {
  const { address, port } = placeOf(server)
  const key = keyOf(address, port)
  const family = address.includes(':') ? 6 : 4
  for (const hashed of port === 0 ? [] : hashedPorts(port)) {
    if (early.has(key)) break
    const handle = makeHidden(() => _createServerHandle?.(address, hashed, family, undefined, flags))
    if (typeof handle !== 'object') continue
    const opened = new EarlyPort(handle, hashed, server)
    handle.onconnection = (status, caller) => {
      if (status !== 0) return
      const callers = tryLoad(() => require('./early-callers.ts') as typeof import('./early-callers.ts'))
      if (callers === undefined) (caller as TcpHandle).close()
      else callers.greetEarly(opened, caller, port, load)
    }
    if (handle.listen(BACKLOG) !== 0) handle.close()
    else {
      handle.unref()
      early.set(key, opened)
    }
  }
  // The primary of a cluster takes the handle when 'listening' is emitted, and its workers have a hashed port of their own.
  makeHidden(() => setImmediate(() => server.listening || closeAt(key)).unref())
  return early.has(key)
}

/** 0 is the port of one on a unix path. */
function placeOf(server: Server): { readonly address: string; readonly port: number } {
  const place = server.address()
  return place === null || typeof place === 'string' ? { address: '', port: 0 } : place
}

function keyOf(address: string, port: number): string {
  return `${address} ${port}`
}

function closeAt(key: string): void {
  early.get(key)?.close()
  early.delete(key)
}

/** The early port of a listener: the caller owns it now. */
export function takeEarlyPort(address: string, port: number): EarlyPort | undefined {
  const key = keyOf(address, port)
  const found = early.get(key)
  early.delete(key)
  return found
}

/** Closes the early port of a server that is about to close. */
export function closeEarlyPort(server: Server): void {
  const { address, port } = placeOf(server)
  closeAt(keyOf(address, port))
}

/** Closes the early port with that number, which the program wants itself. `onLost`: its listener has none any more. */
export function yieldEarlyPort(hashed: unknown, onLost: (server: Server) => void): void {
  for (const [key, { port, server }] of early) {
    if (port !== hashed) continue
    closeAt(key)
    onLost(server)
  }
}

/** Closes those that no bootstrap server has taken over. */
export function closeEarlyPorts(): void {
  for (const key of early.keys()) closeAt(key)
}
