/** Addresses of TCP ports as text: tcp:HOST:PORT, with IPv6 addresses in brackets. */
import { isIP } from 'node:net'
import type { NetworkAddress } from '../../nic/index.ts'

export type TcpAddress = NetworkAddress

/** Characters of a numerical address: the longest of IPv6 in brackets, and a port. */
const ADDRESS_MAX = 64
const ADDRESS = /^tcp:(?:\[([0-9a-f:.]+)\]|([0-9.]+)):([1-9]\d{0,4})$/
/** The same with a host name, as programs write it; `tcp:` may be missing where nothing else can be meant. */
const PLACE = /^(?:tcp:)?(?:\[([0-9a-fA-F:.]+)\]|([a-zA-Z0-9._-]{1,253})):(\d{1,5})$/
const PORT_MAX = 65_535

export function encodeTcpAddress({ host, port }: TcpAddress): string {
  return isIP(host) === 6 ? `tcp:[${host}]:${port}` : `tcp:${host}:${port}`
}

/** Undefined if it is invalid: a stranger may have written it. */
export function decodeTcpAddress(text: string): TcpAddress | undefined {
  if (text.length > ADDRESS_MAX) return undefined
  const [, v6, v4, digits] = ADDRESS.exec(text) ?? []
  const host = v6 ?? v4 ?? ''
  const port = Number(digits)
  return isIP(host) === (v6 === undefined ? 4 : 6) && port <= PORT_MAX ? { host, port } : undefined
}

/** A place that a program names, by address or host name; port 0 is any free one. Undefined if it is none. */
export function parsePlace(text: string): TcpAddress | undefined {
  const [, v6, name, digits] = PLACE.exec(text) ?? []
  const host = v6 ?? name
  const port = Number(digits)
  return host === undefined || port > PORT_MAX || (v6 !== undefined && isIP(v6) !== 6)
    ? undefined
    : { host, port }
}
