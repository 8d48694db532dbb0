import type { SocketName } from './node-internals.ts'

/** Who talks to whom, as the two programs see it. */
export interface StreamAddresses {
  readonly address: string
  readonly family: 'IPv4' | 'IPv6'
  /** The address from which the client comes. */
  readonly source: string
  readonly serverPort: number
  /** 0 as long as it is not known. */
  clientPort: number
}

export function serverName({ address, family, serverPort }: StreamAddresses): SocketName {
  return { address, family, port: serverPort }
}

/** The server gives the port: until it has answered there is none. */
export function clientName({ source, family, clientPort }: StreamAddresses): SocketName {
  return { address: source, family, ...(clientPort > 0 && { port: clientPort }) }
}
