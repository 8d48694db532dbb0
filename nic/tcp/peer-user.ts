/** The user of the other process of a connection within this host, by the kernel. */
import { isIPv4, type Socket } from 'node:net'
import { isOwnUser } from '../posix/own-user.ts'
import { findTcpSocket, TCP_ESTABLISHED } from '../posix/tcp-sockets.ts'

const MAPPED_TEXT = '::ffff:'

/** True for the addresses of this host that no other host can use. */
export function isLoopback(address: string | undefined): boolean {
  const text = address?.startsWith(MAPPED_TEXT) ? address.slice(MAPPED_TEXT.length) : address
  return text === '::1' || (text !== undefined && isIPv4(text) && text.startsWith('127.'))
}

/**
 * Whether the other end of this loopback connection is a process of our own user. `unknown` if the kernel does not show
 * that end: it is closing, the kernel has no sock_diag(7), or this process has no free descriptor to ask.
 */
export function judgePeer(socket: Socket): 'own' | 'other' | 'unknown' {
  const { localAddress, localPort, remoteAddress, remotePort } = socket
  if (!isLoopback(localAddress) || !isLoopback(remoteAddress)) return 'other'
  const ours = { address: localAddress as string, port: localPort as number }
  const theirs = { address: remoteAddress as string, port: remotePort as number }
  const found = findTcpSocket(theirs, ours)
  // Sockets of other states may be shown with user 0, whoever had them.
  if (found?.state !== TCP_ESTABLISHED) return 'unknown'
  return isOwnUser(found.uid) ? 'own' : 'other'
}
