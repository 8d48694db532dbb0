/**
 * The hash of everything that the two sides of a bootstrap have said and heard. Each sends its own in the first frame of the
 * channel; a difference means that somebody between them has changed or swapped something, and ends the channel.
 */
import { createHash } from 'node:crypto'
import type net from 'node:net'
import { withoutMapping } from '../host/addresses.ts'

export const TRANSCRIPT_SIZE = 32

export interface Said {
  readonly greeting: Buffer
  readonly hello: Buffer
  readonly answer: Buffer
}

/**
 * `ends`: both ends of the TCP connection between two hosts, so that a relay in between, which has two connections, is
 * noticed though it changes no byte. Within a host the kernel vouches for the connection.
 */
export function transcriptOf({ greeting, hello, answer }: Said, ends = ''): Buffer {
  return createHash('sha256').update(greeting).update(hello).update(answer).update(ends).digest()
}

/** The client's end and the server's, as both sides see them; empty of a unix connection. */
export function endsOf(connection: net.Socket, role: 'client' | 'server'): string {
  const { localAddress, localPort, remoteAddress, remotePort } = connection
  if (localAddress === undefined || remoteAddress === undefined) return ''
  const own = `${withoutMapping(localAddress)} ${localPort}`
  const peer = `${withoutMapping(remoteAddress)} ${remotePort}`
  return role === 'client' ? `${own} ${peer}` : `${peer} ${own}`
}
