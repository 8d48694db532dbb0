/** The user of the other process of a connection within this host, by the kernel. */
import { isIPv4, type Socket } from 'node:net'
import type { CallerId } from '../posix/callers-by-user.ts'
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
  if (!isOverLoopback(socket)) return 'other'
  const uid = userAtPeer(socket)
  if (uid === undefined) return 'unknown'
  return isOwnUser(uid) ? 'own' : 'other'
}

/** By what an unfinished caller is counted: its user on this host, if the kernel says so; else its address. */
export function callerOf(socket: Socket): CallerId {
  return (isOverLoopback(socket) ? userAtPeer(socket) : undefined) ?? socket.remoteAddress ?? ''
}

function isOverLoopback({ localAddress, remoteAddress }: Socket): boolean {
  return isLoopback(localAddress) && isLoopback(remoteAddress)
}

function userAtPeer({ localAddress, localPort, remoteAddress, remotePort }: Socket): number | undefined {
  const ours = { address: localAddress as string, port: localPort as number }
  const theirs = { address: remoteAddress as string, port: remotePort as number }
  const found = findTcpSocket(theirs, ours)
  // Sockets of other states may be shown with user 0, whoever had them.
  return found?.state === TCP_ESTABLISHED ? found.uid : undefined
}
