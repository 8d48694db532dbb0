import { constants } from 'node:os'
import { getSystemErrorName } from 'node:util'

export const UV_EALREADY = -constants.errno.EALREADY
export const UV_EBADF = -constants.errno.EBADF
export const UV_EBUSY = -constants.errno.EBUSY
export const UV_ECANCELED = -constants.errno.ECANCELED
export const UV_ECONNREFUSED = -constants.errno.ECONNREFUSED
export const UV_ECONNRESET = -constants.errno.ECONNRESET
/** Defined by libuv (uv/errno.h), not by the system. */
export const UV_EOF = -4095
export const UV_EINVAL = -constants.errno.EINVAL
export const UV_EISCONN = -constants.errno.EISCONN
export const UV_ENOTSUP = -constants.errno.ENOTSUP
export const UV_EPIPE = -constants.errno.EPIPE

/** The errno as libuv returns it: negative. */
export function errnoOf(code: 'ECONNRESET' | 'ETIMEDOUT' | 'EPIPE' | 'EFAULT'): number {
  return -constants.errno[code]
}

/** The error code of TCP that corresponds to a channel ended by `cause`. */
export function codeOfEnd(cause: Error): 'ECONNRESET' | 'ETIMEDOUT' {
  const { code } = cause as { code?: string }
  return code === 'ERR_AM_PEER_LOST' || code === 'ETIMEDOUT' ? 'ETIMEDOUT' : 'ECONNRESET'
}

export interface SystemError extends Error {
  errno: number
  code: string
  syscall: string
}

/** The error that `node:net` gives for a failed read or write: same message, errno, code and syscall. */
export function systemError(
  code: 'ECONNRESET' | 'ETIMEDOUT' | 'EPIPE' | 'EFAULT' | 'EBADF' | 'ECANCELED' | 'ENOBUFS' | 'EPROTO',
  syscall: string,
  cause?: Error,
): SystemError {
  return errorOfErrno(-constants.errno[code], syscall, cause)
}

/** As `systemError`; `errno` is negative. */
export function errorOfErrno(errno: number, syscall: string, cause?: Error): SystemError {
  const code = getSystemErrorName(errno)
  const error = new Error(`${syscall} ${code}`, cause && { cause }) as SystemError
  error.errno = errno
  error.code = code
  error.syscall = syscall
  return error
}
