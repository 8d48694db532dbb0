import type { Place } from '../status/status-page.ts'

/** What a call of `connect` asks for, as far as it matters here: a host and a port, or a path and 0. */
export interface ConnectTarget extends Place {
  readonly isPath: boolean
  /** The program has chosen an address or a port of its own. */
  readonly isBound: boolean
}

/** Undefined if Node will refuse the arguments anyway. */
export function targetOf(args: readonly unknown[]): ConnectTarget | undefined {
  const list: readonly unknown[] = Array.isArray(args[0]) ? args[0] : args
  const first = list[0]
  if (typeof first === 'object' && first !== null) return targetOfOptions(first)
  // As Node decides it: what is not a port is a path.
  if (typeof first === 'string' && !(Number(first) >= 0)) return atPath(first)
  return isPort(first) ? atPort(list[1], first, false) : undefined
}

function targetOfOptions(options: object): ConnectTarget | undefined {
  const path = memberOf(options, 'path')
  if (path) return typeof path === 'string' ? atPath(path, isBoundBy(options)) : undefined
  const port = memberOf(options, 'port')
  return isPort(port) ? atPort(memberOf(options, 'host'), port, isBoundBy(options)) : undefined
}

function isBoundBy(options: object): boolean {
  return Boolean(memberOf(options, 'localAddress') || memberOf(options, 'localPort'))
}

/**
 * Many programs spread their options, which gives each object a class of its own on Node 20 (decision 0109): a load by a constant
 * name misses its cache each time, and so does one of what is not there by any name. Asked for first, they take a tenth of that.
 */
function memberOf(options: object, name: string): unknown {
  if (!Object.hasOwn(options, name) && isPlain(Object.getPrototypeOf(options))) return undefined
  return (options as Record<string, unknown>)[name]
}

/** Nothing that anybody means is inherited from it. */
function isPlain(prototype: object | null): boolean {
  return prototype === null || prototype === Object.prototype
}

function atPath(path: string, isBound = false): ConnectTarget {
  return { address: path, port: 0, isPath: true, isBound }
}

function atPort(host: unknown, port: number | string, isBound: boolean): ConnectTarget {
  const address = typeof host === 'string' && host !== '' ? host : 'localhost'
  return { address, port: Number(port) || 0, isPath: false, isBound }
}

export function isPort(port: unknown): port is number | string {
  return typeof port === 'number' || typeof port === 'string'
}
