/**
 * Finds a socket in the rendezvous folder. Everything there may be a stranger's. A name is opened without following a
 * link, what was opened is judged by its type and owner, and the connection is made to exactly that: `/proc/self/fd`
 * leads to it, whatever the name means by then.
 */
import { closeSync, constants, fstatSync, openSync } from 'node:fs'
import {
  AF_UNIX,
  EAGAIN,
  ECONNREFUSED,
  O_PATH,
  SOCK_CLOEXEC,
  SOCK_NONBLOCK,
  SOCK_STREAM,
} from '../posix/constants.ts'
import { type Libc, systemError } from '../posix/libc.ts'
import { pathAddress } from '../posix/unix-socket.ts'
import { reasonAgainstFolder, rendezvousFolder } from './folder.ts'

/** Why a name leads to no socket. */
export interface NoWay {
  readonly code: 'NO_FOLDER' | 'NO_NAME' | 'OTHER_OWNER' | 'NOT_A_SOCKET' | 'REFUSED' | 'NOT_ALLOWED'
  readonly text: string
}

const OPEN = O_PATH | (constants.O_NOFOLLOW ?? 0)

/**
 * Calls `connect` with a path to the socket of that name; the path is valid during the call. `mayOwn`: judges the owner
 * of the file.
 */
export function withSocket<T>(
  name: string,
  mayOwn: (uid: number) => boolean,
  connect: (path: string) => T,
): T | NoWay {
  const folder = rendezvousFolder()
  if (folder === undefined) return noFolder() as NoWay
  let file: number
  try {
    file = openSync(`${folder}/${name}`, OPEN)
  } catch (error) {
    return noFolder() ?? noName(`${folder}/${name}`, error as NodeJS.ErrnoException)
  }
  try {
    const stat = fstatSync(file)
    if (!stat.isSocket()) return { code: 'NOT_A_SOCKET', text: `${folder}/${name} is no socket` }
    if (!mayOwn(stat.uid))
      return { code: 'OTHER_OWNER', text: `${folder}/${name} belongs to user ${stat.uid}` }
    return connect(`/proc/self/fd/${file}`)
  } finally {
    closeSync(file)
  }
}

function noFolder(): NoWay | undefined {
  const text = reasonAgainstFolder(false)
  return text === undefined ? undefined : { code: 'NO_FOLDER', text }
}

function noName(path: string, { code, message }: NodeJS.ErrnoException): NoWay {
  return code === 'ENOENT'
    ? { code: 'NO_NAME', text: `there is no ${path}` }
    : { code: 'NOT_ALLOWED', text: `${path} cannot be opened: ${code ?? message}` }
}

/**
 * Connects without waiting, as `connectAbstract` does. Undefined if the listener's backlog is full. A name that refuses
 * is looked up once more: another listener may just have replaced it.
 */
export function connectByName(
  libc: Libc,
  name: string,
  mayOwn: (uid: number) => boolean,
): number | NoWay | undefined {
  const connect = (): number | NoWay | undefined =>
    withSocket(name, mayOwn, path => connectPath(libc, path, name))
  const first = connect()
  return isNoWay(first) && first.code === 'REFUSED' ? connect() : first
}

export function isNoWay(outcome: unknown): outcome is NoWay {
  return typeof outcome === 'object' && outcome !== null && 'code' in outcome && 'text' in outcome
}

/** `failure`: what connect(2) said instead of ECONNREFUSED. */
export function refusedName(name: string, failure?: string): NoWay {
  const path = `${rendezvousFolder()}/${name}`
  return failure === undefined
    ? { code: 'REFUSED', text: `no process listens at ${path}` }
    : { code: 'NOT_ALLOWED', text: `${path} cannot be connected to: ${failure}` }
}

function connectPath(libc: Libc, path: string, name: string): number | NoWay | undefined {
  const fd = libc.socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)
  if (fd < 0) throw systemError(libc, 'socket')
  const address = pathAddress(path)
  if (libc.connect(fd, address, address.length) === 0) return fd
  const error = systemError(libc, 'connect')
  libc.close(fd)
  if (error.errno === EAGAIN) return undefined
  return error.errno === ECONNREFUSED ? refusedName(name) : refusedName(name, error.message)
}
