import type { SocketName } from '../host/node-internals.ts'
import type { Place } from '../status/status-page.ts'

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

interface Ends {
  readonly role: 'client' | 'server'
  readonly addresses: StreamAddresses | undefined
  /** As `nameInRules` has it. */
  readonly unixPath: string | undefined
}

/** The same as one of the two sees it. Only the server's end of a unix connection has a name. */
export function endsOf({ role, addresses, unixPath }: Ends): {
  local: Place | undefined
  remote: Place | undefined
} {
  const named = unixPath === undefined ? undefined : { address: unixPath, port: 0 }
  const server = addresses ? { address: addresses.address, port: addresses.serverPort } : named
  const client = addresses && { address: addresses.source, port: addresses.clientPort }
  return role === 'client' ? { local: client, remote: server } : { local: server, remote: client }
}
