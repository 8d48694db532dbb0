import { isIP } from 'node:net'

const PREFIX = 'inet:tcp:'

export interface InetName {
  readonly address: string
  readonly port: number
}

/** The name of a listener: `inet:tcp:ADDRESS:PORT`, an IPv6 address without brackets. */
export function formatInetName({ address, port }: InetName): string {
  if (isIP(address) === 0) throw new TypeError(`not an IP address: ${address}`)
  if (!Number.isInteger(port) || port < 1 || port > 65535) throw new RangeError(`not a port: ${port}`)
  return `${PREFIX}${address}:${port}`
}

/** Undefined if `name` is not the name of a listener. */
export function parseInetName(name: string): InetName | undefined {
  if (!name.startsWith(PREFIX)) return undefined
  const colon = name.lastIndexOf(':')
  const address = name.slice(PREFIX.length, colon)
  const digits = name.slice(colon + 1)
  const port = Number(digits)
  if (isIP(address) === 0 || !/^[1-9]\d{0,4}$/.test(digits) || port > 65535) return undefined
  return { address, port }
}
