import { constants } from 'node:os'
import { getSystemErrorName } from 'node:util'

export const UV_EALREADY = -constants.errno.EALREADY
export const UV_EBADF = -constants.errno.EBADF
export const UV_ECANCELED = -constants.errno.ECANCELED
export const UV_ECONNREFUSED = -constants.errno.ECONNREFUSED
export const UV_ECONNRESET = -constants.errno.ECONNRESET
/** libuv's own. */
export const UV_EOF = -4095
export const UV_EISCONN = -constants.errno.EISCONN
export const UV_ENOTSUP = -constants.errno.ENOTSUP
export const UV_EPIPE = -constants.errno.EPIPE

/** As libuv has it: negative. */
export function errnoOf(code: 'ECONNRESET' | 'ETIMEDOUT' | 'EPIPE' | 'EFAULT'): number {
  return -constants.errno[code]
}

/** What TCP would say when the channel under a connection ends with `cause`. */
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
  code: 'ECONNRESET' | 'ETIMEDOUT' | 'EPIPE' | 'EFAULT' | 'EBADF' | 'ECANCELED' | 'ENOBUFS',
  syscall: string,
  cause?: Error,
): SystemError {
  const errno = -constants.errno[code]
  const error = new Error(`${syscall} ${getSystemErrorName(errno)}`, cause && { cause }) as SystemError
  error.errno = errno
  error.code = code
  error.syscall = syscall
  return error
}
