/**
 * Names of listeners on unix paths. The bootstrap server of such a listener has an abstract unix name in place of a
 * hashed port. The name is made from the kernel's identity of the socket: device and inode of the file, whichever
 * path leads to the file, or the abstract name itself. An abstract name leaves no file behind, and is not found from
 * another network namespace: the kernel serves clients there.
 */
import { createHash } from 'node:crypto'
import { accessSync, constants, statSync } from 'node:fs'

/** The address family of a connection, as in the protocol (docs/protocol.md). */
export const UNIX = 1
/** In place of a family: the CONNECT names a TCP connection that the two have already (docs/protocol.md). */
export const PROMOTION = 2
/** In place of a family: the CONNECT asks for a pair of UDP sockets (docs/protocol.md). */
export const DATAGRAMS = 3
export type Family = 4 | 6 | typeof UNIX
/** What a CONNECT says. */
export type Asked = Family | typeof PROMOTION | typeof DATAGRAMS

const FILE = 'file-'

/** The greatest length of an abstract name: Node 20 pads shorter ones with zeros, later versions do not. */
const SHADOW_NAME_SIZE = 108

/** True for the key of a socket file, which has an owner and a mode; false for that of an abstract name. */
export function isFileKey(key: string): boolean {
  return key.startsWith(FILE)
}

/** The key of the listener at `path`, the same in all processes of this host; undefined without a writable file. */
export function unixKey(path: string): string | undefined {
  if (path.startsWith('\0')) return `name-${createHash('sha256').update(path).digest('hex').slice(0, 40)}`
  try {
    // connect(2) requires write permission on the file.
    accessSync(path, constants.W_OK)
    const { dev, ino } = statSync(path, { bigint: true })
    return `${FILE}${dev.toString(36)}-${ino.toString(36)}`
  } catch {
    return undefined
  }
}

/** The file of a key; undefined for the key of an abstract name. */
export function fileOfKey(key: string): { readonly dev: string; readonly ino: string } | undefined {
  const [, dev, ino] = /^file-([0-9a-z]+)-([0-9a-z]+)$/.exec(key) ?? []
  return dev === undefined || ino === undefined ? undefined : { dev, ino }
}

/** The abstract unix name of the bootstrap server for `key`: one for each candidate, as with hashed ports. */
export function shadowName(key: string, candidate = 0): string {
  return `\0fastsockets-${candidate === 0 ? '' : `${candidate}-`}${key}`.padEnd(SHADOW_NAME_SIZE, '-')
}
