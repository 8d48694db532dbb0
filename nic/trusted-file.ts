/**
 * Reads files that this package obeys: policies, tokens, keys, certificates, settings, cached measurements. Their
 * paths come from the environment, a setting or the home folder, so each file is checked before its bytes are used
 * (docs/decisions/0131).
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

/** libuv always adds O_CLOEXEC. Windows has neither O_NONBLOCK nor O_NOFOLLOW. */
const { O_RDONLY, O_NONBLOCK = 0, O_NOFOLLOW = 0 } = constants
const ROOT_USER = 0
const STICKY = 0o1000
const WRITE_OF_OTHERS = 0o022
const ACCESS_OF_STRANGERS = 0o007
const ACCESS_OF_OTHERS = 0o077
/** The kernel's limit (path_resolution(7)). */
const LINKS_MAX = 40
const NO_FILE = 'is no regular file'

export interface TrustedFileOptions {
  /** Largest accepted file size, in bytes. */
  readonly sizeMax: number
  /** The file is refused if users outside its group have any access to it. */
  readonly isSecret?: boolean
  /** The file is refused if any user but its owner has any access to it. */
  readonly isPrivate?: boolean
}

/** The file exists, but may not be trusted. The message says why and names the remedy. */
export class UntrustedFileError extends Error {
  readonly code = 'ERR_UNTRUSTED_FILE'
  /** The message without the path, for logs that must not contain paths. */
  readonly problem: string

  constructor(path: string, problem: string) {
    super(`${shownText(path)} ${problem}`)
    this.name = 'UntrustedFileError'
    this.problem = problem
  }
}

/**
 * The bytes of a regular file of this user or root that no other user can write or exchange. Never waits. Throws an
 * `UntrustedFileError`, or a system error such as `ENOENT`.
 */
export function readTrustedFile(path: string, options: TrustedFileOptions): Buffer {
  const real = resolveTrusted(path)
  // Checked before `open`, which may have effects on a device. `fstat` checks again what was opened.
  if (!lstatSync(real).isFile()) throw new UntrustedFileError(real, NO_FILE)
  const fd = openSync(real, O_RDONLY | O_NONBLOCK | O_NOFOLLOW)
  try {
    const stat = fstatSync(fd)
    const problem = problemOfFile(stat, options)
    if (problem !== undefined) throw new UntrustedFileError(real, problem)
    return readWhole(fd, stat.size)
  } finally {
    closeSync(fd)
  }
}

/**
 * The path without links. Throws unless only this user or root can exchange entries of each folder on the way, and each
 * link belongs to this user or root.
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

/** `rootUid`: the owner of `/`. In a user namespace its uid may be another one than 0. */
function checkFolder(path: string, { uid, mode }: Stats, rootUid: number): void {
  if (!isOurs(uid) && uid !== rootUid)
    throw new UntrustedFileError(path, `is a folder of user ${uid}, who could exchange the file`)
  // In a sticky folder only its owner and the file's owner may exchange a file, and both owners are checked.
  if (hasOwners && (mode & WRITE_OF_OTHERS) !== 0 && (mode & STICKY) === 0)
    throw new UntrustedFileError(
      path,
      'is a folder in which others could exchange the file: chmod go-w on it',
    )
}

function problemOfFile(
  stat: Stats,
  { sizeMax, isSecret, isPrivate }: TrustedFileOptions,
): string | undefined {
  const { uid, mode, size } = stat
  if (!stat.isFile()) return NO_FILE
  if (size > sizeMax) return `has more than ${sizeMax} bytes`
  if (!isOurs(uid)) return `belongs to user ${uid}: it must belong to this user or root (chown)`
  if (!hasOwners) return undefined
  if ((mode & WRITE_OF_OTHERS) !== 0) return 'may be written to by its group or by others: chmod go-w on it'
  if (isSecret && (mode & ACCESS_OF_STRANGERS) !== 0)
    return 'is secret, and others may read it: chmod o= on it'
  if (isPrivate && (mode & ACCESS_OF_OTHERS) !== 0)
    return 'is secret, and users other than its owner may read it: chmod 600 on it'
  return undefined
}

/** False on Windows, which has no numeric owners and modes. */
const hasOwners = process.geteuid !== undefined

/**
 * Not ours: the overflow uid, to which the files of all unmapped users of a user namespace seem to belong
 * (own-user.ts).
 */
function isOurs(uid: number): boolean {
  return !hasOwners || uid === ROOT_USER || isOwnUser(uid)
}

/** At most `size` bytes: bytes that are appended during the read are ignored. */
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
