import type { Place } from '../status/status-page.ts'

/** The target of a `connect` call: a host and a port, or a path and 0. */
export interface ConnectTarget extends Place {
  readonly isPath: boolean
  /** The program has chosen the local address or port. */
  readonly isBound: boolean
}

/** Unchecked: the program may have passed values of any type. */
interface SocketOptions {
  readonly path?: unknown
  readonly port?: unknown
  readonly host?: unknown
  readonly localAddress?: unknown
  readonly localPort?: unknown
}

/** Undefined if Node will refuse the arguments. */
export function targetOf(args: readonly unknown[]): ConnectTarget | undefined {
  const list: readonly unknown[] = Array.isArray(args[0]) ? args[0] : args
  const first = list[0]
  if (typeof first === 'object' && first !== null) return targetOfOptions(first)
  // As Node decides: a string that is no port is a path.
  if (typeof first === 'string' && !(Number(first) >= 0)) return atPath(first, false)
  return isPort(first) ? atPort(list[1], first, false) : undefined
}

function targetOfOptions({
  path,
  port,
  host,
  localAddress,
  localPort,
}: SocketOptions): ConnectTarget | undefined {
  const isBound = Boolean(localAddress || localPort)
  if (path) return typeof path === 'string' ? atPath(path, isBound) : undefined
  return isPort(port) ? atPort(host, port, isBound) : undefined
}

function atPath(path: string, isBound: boolean): ConnectTarget {
  return { address: path, port: 0, isPath: true, isBound }
}

function atPort(host: unknown, port: number | string, isBound: boolean): ConnectTarget {
  const address = typeof host === 'string' && host !== '' ? host : 'localhost'
  return { address, port: Number(port) || 0, isPath: false, isBound }
}

export function isPort(port: unknown): port is number | string {
  return typeof port === 'number' || typeof port === 'string'
}
