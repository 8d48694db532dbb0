/**
 * Files that a program obeys: policies, tokens, keys, certificates, settings, what it remembers. Their names come from the
 * environment, a setting or the home folder, so each is checked before a byte of it is used (docs/decisions/0131).
 */
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readlinkSync,
  readSync,
  type Stats,
} from 'node:fs'
import { isAbsolute, join, sep } from 'node:path'
import { isOwnUser } from './posix/own-user.ts'
import { shownText } from './shown-text.ts'

/** O_CLOEXEC is libuv's own, always. Windows has neither of the other two. */
const { O_RDONLY, O_NONBLOCK = 0, O_NOFOLLOW = 0 } = constants
const ROOT_USER = 0
const STICKY = 0o1000
const WRITE_OF_OTHERS = 0o022
const ACCESS_OF_STRANGERS = 0o007
/** As the kernel has it (path_resolution(7)). */
const LINKS_MAX = 40
const NO_FILE = 'is no regular file'

export interface TrustedFileOptions {
  /** Of the whole file, in bytes. */
  readonly sizeMax: number
  /** It is a secret: refused if users outside its group may read it. */
  readonly isSecret?: boolean
}

/** The file is there and may be opened, but must not be relied on: why, and what to do. */
export class UntrustedFileError extends Error {
  readonly code = 'ERR_UNTRUSTED_FILE'
  /** The same without any path, for logs that name none. */
  readonly problem: string

  constructor(path: string, problem: string) {
    super(`${shownText(path)} ${problem}`)
    this.name = 'UntrustedFileError'
    this.problem = problem
  }
}

/**
 * The bytes of a regular file of this user or root that no other user can write or exchange. Never waits. Throws an
 * `UntrustedFileError`, or what the system says (`ENOENT`).
 */
export function readTrustedFile(path: string, { sizeMax, isSecret = false }: TrustedFileOptions): Buffer {
  const real = resolveTrusted(path)
  // Before it is opened: that alone may do something to a device.
  if (!lstatSync(real).isFile()) throw new UntrustedFileError(real, NO_FILE)
  const fd = openSync(real, O_RDONLY | O_NONBLOCK | O_NOFOLLOW)
  try {
    const stat = fstatSync(fd)
    const problem = problemOfFile(stat, sizeMax, isSecret)
    if (problem !== undefined) throw new UntrustedFileError(real, problem)
    return readWhole(fd, stat.size)
  } finally {
    closeSync(fd)
  }
}

/**
 * The path without links. Each folder on the way must be such that only this user or root can put something else in its
 * place; links must be this user's or root's, so that they may be followed.
 */
function resolveTrusted(path: string): string {
  const rest = (isAbsolute(path) ? path : join(process.cwd(), path)).split(sep)
  const root = lstatSync(sep)
  checkFolder(sep, root, root.uid)
  let place: string = sep
  let links = 0
  while (rest.length > 0) {
    const next = join(place, rest.shift() as string)
    const stat = lstatSync(next)
    if (!stat.isSymbolicLink()) {
      if (stat.isDirectory()) checkFolder(next, stat, root.uid)
      place = next
      continue
    }
    if (!isOurs(stat.uid))
      throw new UntrustedFileError(next, `is a link of user ${stat.uid}: name the file itself`)
    if (++links > LINKS_MAX) throw new UntrustedFileError(path, `leads over more than ${LINKS_MAX} links`)
    const target = readlinkSync(next)
    if (isAbsolute(target)) place = sep
    rest.unshift(...target.split(sep))
  }
  return place
}

/** `rootUid`: the owner of `/`, whom a user namespace may show by another number than root's. */
function checkFolder(path: string, { uid, mode }: Stats, rootUid: number): void {
  if (!isOurs(uid) && uid !== rootUid)
    throw new UntrustedFileError(path, `is a folder of user ${uid}, who could exchange the file`)
  // In a sticky folder only the owner of a file may exchange it, and the owner of the file is checked.
  if (hasOwners && (mode & WRITE_OF_OTHERS) !== 0 && (mode & STICKY) === 0)
    throw new UntrustedFileError(
      path,
      'is a folder in which others could exchange the file: chmod go-w on it',
    )
}

function problemOfFile(stat: Stats, sizeMax: number, isSecret: boolean): string | undefined {
  const { uid, mode, size } = stat
  if (!stat.isFile()) return NO_FILE
  if (size > sizeMax) return `has more than ${sizeMax} bytes`
  if (!isOurs(uid)) return `belongs to user ${uid}: it must belong to this user or root (chown)`
  if (!hasOwners) return undefined
  if ((mode & WRITE_OF_OTHERS) !== 0) return 'may be written to by its group or by others: chmod go-w on it'
  if (isSecret && (mode & ACCESS_OF_STRANGERS) !== 0)
    return 'is secret, and others may read it: chmod o= on it'
  return undefined
}

/** Windows has no such owners. */
const hasOwners = process.geteuid !== undefined

/** In a user namespace the files of all who are not mapped seem to be one user's, who is nobody (own-user.ts). */
function isOurs(uid: number): boolean {
  return !hasOwners || uid === ROOT_USER || isOwnUser(uid)
}

/** At most `size` bytes: what is appended meanwhile is not read. */
function readWhole(fd: number, size: number): Buffer {
  const bytes = Buffer.alloc(size)
  let length = 0
  while (length < size) {
    const count = readSync(fd, bytes, length, size - length, length)
    if (count === 0) break
    length += count
  }
  return bytes.subarray(0, length)
}
