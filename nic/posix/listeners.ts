/** Asks the kernel whether a place of this network namespace has a listener, without a connection to it. */
import { closeSync, openSync, readSync } from 'node:fs'
import { basename } from 'node:path'
import { findTcpSocket, TCP_LISTEN } from './tcp-sockets.ts'

const UNIX_LIST = '/proc/thread-self/net/unix'
/** Some thousand sockets, in some milliseconds: another user may have more. */
const UNIX_LIST_SIZE_MAX = 1 << 18
/** In the column `Flags` of the list: __SO_ACCEPTCON. */
const LISTENS = ' 00010000 '

/** True if a TCP listener of this network namespace would get a connection to the place. False if the kernel does not say. */
export function isTcpListening(address: string, port: number): boolean {
  return findTcpSocket({ address, port })?.state === TCP_LISTEN
}

/** True if a listener of user `uid` would get a connection to the place. False if the kernel does not say. */
export function isListenerOf(uid: number, address: string, port: number): boolean {
  const listener = findTcpSocket({ address, port })
  return listener?.state === TCP_LISTEN && listener.uid === uid
}

/**
 * True if a unix listener has a path with the last part of `path`: its program may have bound it by another form of the
 * path. False if the list cannot be read.
 */
export function isUnixListening(path: string): boolean {
  // The kernel shows the zero byte of an abstract name as @.
  const name = basename(path.replaceAll('\0', '@'))
  return listOfUnix()
    .split('\n')
    .some(row => row.includes(LISTENS) && row.endsWith(name))
}

function listOfUnix(): string {
  let file = -1
  try {
    file = openSync(UNIX_LIST, 'r')
    const bytes = Buffer.allocUnsafe(UNIX_LIST_SIZE_MAX)
    let size = 0
    for (let length = -1; length !== 0 && size < bytes.length; size += length)
      length = readSync(file, bytes, size, bytes.length - size, null)
    return bytes.toString('utf8', 0, size)
  } catch {
    return ''
  } finally {
    if (file !== -1) closeSync(file)
  }
}
