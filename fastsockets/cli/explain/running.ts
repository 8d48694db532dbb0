/**
 * `fastsockets explain --pid`: for a process that runs, busy or stopped, too. Reads its program, the version of its policy and its
 * connections from its status page, and its variables from /proc.
 */
import { readFileSync } from 'node:fs'
import { isAbsolute, join } from 'node:path'
import { POLICY_VARIABLE } from '../../policy/find-policy.ts'
import { ownPolicy } from '../../policy/own-policy.ts'
import type { SocketStatus } from '../../status/decode-status.ts'
import { readStatusOf } from '../../status/read-status.ts'

const VARIABLE = /^(FASTSOCKETS_\w+|HOME|XDG_CONFIG_HOME)=/

/** `transport` and `reason` of some connections, and their number. */
export interface Connections {
  readonly transport: string
  readonly reason?: string
  readonly count: number
}

export interface Running {
  readonly program: string
  /** Its present connections to that place. */
  connectionsTo(address: string, port: number): Connections[]
}

/**
 * This process gets the variables and the policy of process `pid`. Throws if that is not relinked, or if the policy that it has
 * cannot be read any more.
 */
export function becomeLike(pid: number): Running {
  const [thread, ...others] = readStatusOf(pid)
  if (thread === undefined) throw new Error(`process ${pid} is no relinked process of this user`)
  const { policy, program } = thread
  copyVariables(pid)
  if (policy !== undefined) {
    const { file } = policy
    process.env[POLICY_VARIABLE] = isAbsolute(file) ? file : join(`/proc/${pid}/cwd`, file)
    const { version } = ownPolicy() ?? {}
    if (version !== policy.version)
      throw new Error(
        `process ${pid} has ${file} in version ${policy.version ?? 'none'}, and the file has ${version ?? 'none'}: fastsockets policy check ${file}`,
      )
  }
  const sockets = [thread, ...others].flatMap(one => one.sockets)
  return { program, connectionsTo: (address, port) => connectionsOf(sockets, address, port) }
}

/** As they were when it was started. */
function copyVariables(pid: number): void {
  for (const name of Object.keys(process.env)) if (VARIABLE.test(`${name}=`)) delete process.env[name]
  for (const line of readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0')) {
    const at = line.indexOf('=')
    if (VARIABLE.test(line)) process.env[line.slice(0, at)] = line.slice(at + 1)
  }
}

function connectionsOf(sockets: readonly SocketStatus[], address: string, port: number): Connections[] {
  const place = port === 0 ? address : address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`
  const found = new Map<string, Connections>()
  for (const { role, remote, transport, reason } of sockets) {
    if (role !== 'client' || remote !== place) continue
    const key = `${transport} ${reason}`
    const { count = 0 } = found.get(key) ?? {}
    found.set(key, { transport, ...(reason !== undefined && { reason }), count: count + 1 })
  }
  return [...found.values()]
}
