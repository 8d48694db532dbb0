/**
 * The hash of all bytes that the two sides of a bootstrap have exchanged. Each side sends its hash in the first frame
 * of the channel. If the hashes differ, a third party has changed or swapped bytes, and the channel ends.
 */
import { createHash } from 'node:crypto'
import type net from 'node:net'
import { withoutMapping } from '../host/addresses.ts'

export interface Exchanged {
  readonly greeting: Buffer
  readonly hello: Buffer
  readonly answer: Buffer
}

/**
 * `ends`: both ends of the TCP connection between two hosts. A relay has two connections, so the hash differs even if
 * the relay changes no byte. Within a host the kernel vouches for the connection.
 */
export function transcriptOf({ greeting, hello, answer }: Exchanged, ends = ''): Buffer {
  return createHash('sha256').update(greeting).update(hello).update(answer).update(ends).digest()
}

/** The client's end and the server's, as both sides see them; empty for a unix connection. */
export function endsOf(connection: net.Socket, role: 'client' | 'server'): string {
  const { localAddress, localPort, remoteAddress, remotePort } = connection
  if (localAddress === undefined || remoteAddress === undefined) return ''
  const own = `${withoutMapping(localAddress)} ${localPort}`
  const peer = `${withoutMapping(remoteAddress)} ${remotePort}`
  return role === 'client' ? `${own} ${peer}` : `${peer} ${own}`
}
