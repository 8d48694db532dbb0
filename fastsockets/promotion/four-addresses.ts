/** The four addresses of a TCP connection, by which both ends name it; of one over a unix path the inode of the server's end. */

import type { FourAddresses } from '../handle/tcp-below.ts'
import { withoutMapping } from '../host/addresses.ts'
import type { StreamAddresses } from '../stream/stream-addresses.ts'

const NO_PORT = 0

/** What a client says of its connection, beside the server's port. */
export function textOf({ client, server }: FourAddresses): string {
  return `${withoutMapping(client.address)} ${client.port} ${withoutMapping(server.address)}`
}

/** A server finds a connection of its own by this. */
export function keyOf(ends: FourAddresses): string {
  return `${textOf(ends)} ${ends.server.port}`
}

/** Likewise, of a connection over a unix path. */
export function keyOfInode(inode: number): string {
  return `${inode} ${NO_PORT}`
}

export function addressesOf({ client, server }: FourAddresses): StreamAddresses {
  return {
    address: server.address,
    source: client.address,
    family: server.family === 'IPv6' ? 'IPv6' : 'IPv4',
    serverPort: server.port,
    clientPort: client.port,
  }
}
