/** The file of a unix socket, which remains when its daemon is killed. */
import { lstat, mkdir, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { dirname } from 'node:path'

/** Longest time for the connection to be accepted or refused. */
const CALL_TIMEOUT_MS = 1000
const NOBODY: ReadonlySet<string> = new Set(['ECONNREFUSED', 'ENOENT'])
/** bind(2) silently truncates longer paths; this is the size of sun_path less the terminating zero. */
export const SOCKET_PATH_LENGTH_MAX = 107

export class SocketFileError extends Error {
  readonly code: 'ERR_SOCKET_IN_USE' | 'ERR_SOCKET_LISTEN' | 'ERR_SOCKET_NOT_OURS' | 'ERR_SOCKET_PATH'

  constructor(code: SocketFileError['code'], message: string) {
    super(message)
    this.name = 'SocketFileError'
    this.code = code
  }
}

/** Prepares `path` for a listener: makes its folder, and removes the socket of a dead daemon. */
export async function prepareSocketFile(path: string): Promise<void> {
  if (Buffer.byteLength(path) > SOCKET_PATH_LENGTH_MAX) {
    throw new SocketFileError(
      'ERR_SOCKET_PATH',
      `the socket's path is longer than ${SOCKET_PATH_LENGTH_MAX} bytes`,
    )
  }
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o755 })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new SocketFileError('ERR_SOCKET_PATH', `the folder of the socket cannot be made: ${code}`)
  }
  const found = await lstat(path).catch(() => undefined)
  if (found === undefined) return
  if (!found.isSocket()) {
    throw new SocketFileError('ERR_SOCKET_NOT_OURS', 'there is a file in the place of the socket')
  }
  if (await isAnswered(path)) {
    throw new SocketFileError('ERR_SOCKET_IN_USE', 'another daemon listens on the socket')
  }
  await rm(path, { force: true })
}

function isAnswered(path: string): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect(path)
    const settle = (isUp: boolean) => {
      socket.destroy()
      resolve(isUp)
    }
    // Any other error may come from a busy daemon, or from one that this user may not call.
    socket.once('error', ({ code = '' }: NodeJS.ErrnoException) => settle(!NOBODY.has(code)))
    socket.once('connect', () => settle(true))
    socket.setTimeout(CALL_TIMEOUT_MS, () => settle(true))
  })
}
