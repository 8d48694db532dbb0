import type { SocketName } from './node-internals.ts'

/** Who talks to whom, as the two programs see it. */
export interface StreamAddresses {
  readonly address: string
  readonly family: 'IPv4' | 'IPv6'
  /** The address from which the client comes. */
  readonly source: string
  readonly serverPort: number
  clientPort: number
}

export function serverName({ address, family, serverPort }: StreamAddresses): SocketName {
  return { address, family, port: serverPort }
}

export function clientName({ source, family, clientPort }: StreamAddresses): SocketName {
  return { address: source, family, port: clientPort }
}
