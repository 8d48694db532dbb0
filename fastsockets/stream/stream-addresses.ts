import type { SocketName } from '../host/node-internals.ts'
import type { Place } from '../status/status-page.ts'

/** The addresses of a connection, as the two programs see them. */
export interface StreamAddresses {
  readonly address: string
  readonly family: 'IPv4' | 'IPv6'
  /** The address of the client. */
  readonly source: string
  readonly serverPort: number
  /** 0 while it is not known. */
  clientPort: number
}

export function serverName({ address, family, serverPort }: StreamAddresses): SocketName {
  return { address, family, port: serverPort }
}

/** The server gives the port: before its answer there is none. */
export function clientName({ source, family, clientPort }: StreamAddresses): SocketName {
  return { address: source, family, ...(clientPort > 0 && { port: clientPort }) }
}

interface Ends {
  readonly role: 'client' | 'server'
  readonly addresses: StreamAddresses | undefined
  /** The path as rules name it (`nameInRules`). */
  readonly unixPath: string | undefined
}

/** Own and remote address, as the side with `role` sees them. */
export function endsOf({ role, addresses, unixPath }: Ends): {
  local: Place | undefined
  remote: Place | undefined
} {
  const named = unixPath === undefined ? undefined : { address: unixPath, port: 0 }
  const server = addresses ? { address: addresses.address, port: addresses.serverPort } : named
  const client = addresses && { address: addresses.source, port: addresses.clientPort }
  return role === 'client' ? { local: client, remote: server } : { local: server, remote: client }
}
