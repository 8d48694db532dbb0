import { constants } from 'node:os'
import { getSystemErrorName } from 'node:util'

export const UV_EBADF = -constants.errno.EBADF
export const UV_ECANCELED = -constants.errno.ECANCELED
export const UV_ECONNREFUSED = -constants.errno.ECONNREFUSED
export const UV_EPIPE = -constants.errno.EPIPE

export interface SystemError extends Error {
  errno: number
  code: string
  syscall: string
}

/** The error that `node:net` gives for a failed read or write: same message, errno, code and syscall. */
export function systemError(
  code: 'ECONNRESET' | 'EPIPE' | 'EBADF' | 'ECANCELED' | 'ENOBUFS',
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
