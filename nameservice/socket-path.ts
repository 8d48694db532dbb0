/** The default path of the daemon's unix socket. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'

/** Environment variable with the daemon's address: `unix:PATH`, `http://HOST:PORT` or `https://HOST:PORT`. */
export const ADDRESS_VARIABLE = 'FASTSOCKETS_NAMES'

const SOCKET = 'fastsockets/named.sock'
const SYSTEM_FOLDER = '/run'

/** Path at which a daemon listens: in the user's runtime folder if there is one, otherwise in the system's. */
export function defaultSocketPath(env: NodeJS.ProcessEnv = process.env): string {
  return join(env.XDG_RUNTIME_DIR || SYSTEM_FOLDER, SOCKET)
}

/** Path at which a program looks for the daemon: the user's own daemon if its socket exists, otherwise the system's. */
export function findSocketPath(env: NodeJS.ProcessEnv = process.env): string {
  const own = defaultSocketPath(env)
  return exists(own) ? own : join(SYSTEM_FOLDER, SOCKET)
}

/** True if a daemon is expected: an address over TCP, or an existing socket. Connects to nothing. */
export function isDaemonExpected(env: NodeJS.ProcessEnv = process.env): boolean {
  const address = env[ADDRESS_VARIABLE]
  if (!address) return exists(findSocketPath(env))
  return address.startsWith('unix:') ? exists(address.slice('unix:'.length)) : true
}

/** Node's permission model may hide the path: then a connection is impossible too. */
function exists(path: string): boolean {
  try {
    return existsSync(path)
  } catch {
    return false
  }
}
