/**
 * Hashed ports of listeners in the first phase of a program (relink/light-phase.ts). Each is a bound, listening handle, and loads
 * nothing until somebody calls (early-callers.ts). The bootstrap server takes it over.
 */
import net, { type Socket } from 'node:net'
import { makeHidden } from '../../nic/own-resources.ts'
import type { TcpHandle } from '../host/node-internals.ts'
import { hashedPorts } from './hashed-port.ts'

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
  /** They wait for the rest of their greeting. */
  readonly callers = new Set<Socket>()
  #greet: ((caller: Socket) => void) | undefined

  constructor(handle: TcpHandle, port: number) {
    this.handle = handle
    this.port = port
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

/** `flags`: those of the listener's own bind. `onCall` gets each caller's handle. */
export function openEarlyPort(
  address: string,
  port: number,
  flags: unknown,
  onCall: (early: EarlyPort, caller: object) => void,
): void {
  const key = `${address} ${port}`
  const family = address.includes(':') ? 6 : 4
  for (const hashed of hashedPorts(port)) {
    if (early.has(key)) return
    const handle = makeHidden(() => _createServerHandle?.(address, hashed, family, undefined, flags))
    if (typeof handle !== 'object') continue
    const opened = new EarlyPort(handle, hashed)
    handle.onconnection = (status, caller) => {
      if (status === 0) onCall(opened, caller)
    }
    if (handle.listen(BACKLOG) !== 0) handle.close()
    else {
      handle.unref()
      early.set(key, opened)
    }
  }
}

/** The early port of a listener if it has that number: the caller owns it now. */
export function takeEarlyPort(address: string, port: number, hashed: number): EarlyPort | undefined {
  const key = `${address} ${port}`
  const found = early.get(key)
  if (found?.port !== hashed) return undefined
  early.delete(key)
  return found
}

/** Closes the early port of a listener that has closed. */
export function closeEarlyPort(address: string, port: number): void {
  const key = `${address} ${port}`
  early.get(key)?.close()
  early.delete(key)
}

/** Closes the early port with that number, which the program wants itself. */
export function yieldEarlyPort(hashed: unknown): void {
  for (const [key, one] of early)
    if (one.port === hashed) {
      one.close()
      early.delete(key)
    }
}

export function closeEarlyPorts(): void {
  for (const one of early.values()) one.close()
  early.clear()
}
