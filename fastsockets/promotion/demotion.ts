/** The way back: a connection that has moved to a stream goes on by the TCP connection below it. */
import type { Socket } from 'node:net'
import type { FastSocket } from '../handle/fast-handle-contract.ts'
import { promotedUnder } from './find-promoted.ts'

/** Whether the socket is on a stream, with a TCP connection below it. */
export function mayReturn(socket: Socket): boolean {
  return promotedUnder((socket as FastSocket)._handle)?.isOnTcp === false
}

/** As `moveToTcp`, for a socket that another process gets: what the peer sends from now on is not for this program. */
export function moveToTcpUnread(socket: Socket): Promise<boolean> {
  promotedUnder((socket as FastSocket)._handle)?.readStop()
  return moveToTcp(socket)
}

/**
 * Moves both directions to TCP. The promise becomes true once they are there, which takes an answer of the peer, and a program that reads
 * what it was sent before; false if the connection has ended, or has no TCP below it. It may move again when TCP has cost enough.
 */
export function moveToTcp(socket: Socket): Promise<boolean> {
  const handle = promotedUnder((socket as FastSocket)._handle)
  return new Promise(resolve => (handle === undefined ? resolve(false) : handle.demote(resolve)))
}
