/** Where the daemon's unix socket is, unless somebody says otherwise. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'

/** Where the daemon is, if the program does not say: `unix:PATH`, `http://HOST:PORT` or `https://HOST:PORT`. */
export const ADDRESS_VARIABLE = 'FASTSOCKETS_NAMES'

const SOCKET = 'fastsockets/named.sock'
const SYSTEM_FOLDER = '/run'

/** Where a daemon listens: in the user's own folder if there is one, else in the system's. */
export function defaultSocketPath(env: NodeJS.ProcessEnv = process.env): string {
  return join(env.XDG_RUNTIME_DIR || SYSTEM_FOLDER, SOCKET)
}

/** Where a program looks for it: the user's own daemon if it has one, else the system's. */
export function findSocketPath(env: NodeJS.ProcessEnv = process.env): string {
  const own = defaultSocketPath(env)
  return exists(own) ? own : join(SYSTEM_FOLDER, SOCKET)
}

/** Whether there is something to ask: an address over TCP, or a socket where a daemon is expected. Asks nobody. */
export function isDaemonExpected(env: NodeJS.ProcessEnv = process.env): boolean {
  const address = env[ADDRESS_VARIABLE]
  if (!address) return exists(findSocketPath(env))
  return address.startsWith('unix:') ? exists(address.slice('unix:'.length)) : true
}

/** A path that Node's permission model hides cannot be asked. */
function exists(path: string): boolean {
  try {
    return existsSync(path)
  } catch {
    return false
  }
}
