/** What another policy would change of the relinked processes that run: `policy check --against-running`. */

import type { Decision, Policy } from '../../policy/policy.ts'
import type { Role } from '../../policy/policy-schema.ts'
import type { ProcessStatus, SocketStatus } from '../../status/decode-status.ts'

const PLACE = /^\[?(?:::ffff:)?([^\]]+?)\]?:(\d+)$/

/** A line for each connection and listener that would be another one. */
export function changesOf(policy: Policy, running: readonly ProcessStatus[]): string[] {
  return running.flatMap(status => {
    const { pid, program, sockets, listeners } = status
    const lines = [
      ...listeners.flatMap(({ local, reason }) => {
        const decision = decide(policy, program, 'server', local)
        const change = changeOf(decision, reason === undefined ? 'fast' : 'tcp', reason)
        return change === undefined ? [] : [`listener ${local}: ${change}`]
      }),
      ...sockets.flatMap(socket => {
        const change = changeOfSocket(policy, program, socket)
        return change === undefined ? [] : [`${socket.role} of ${placeOf(socket)}: ${change}`]
      }),
    ]
    return counted(lines).map(line => `${pid}  ${program}  ${line}`)
  })
}

function changeOfSocket(policy: Policy, program: string, socket: SocketStatus): string | undefined {
  const { transport, role, reason, peer } = socket
  const decision = decide(policy, program, role as Role, placeOf(socket))
  if (reason === undefined && decision?.use !== 'tcp') {
    if (!policy.allowsDriver(transport)) return `${transport} -> tcp: drivers leaves ${transport} out`
    if (peer !== undefined && !policy.allowsUser(peer.uid))
      return `${transport} -> tcp: users leaves ${peer.uid} out`
  }
  return changeOf(decision, transport, reason)
}

/** The server's address, by which rules decide. */
function placeOf({ role, local, remote }: SocketStatus): string {
  return role === 'client' ? remote : local
}

function decide(policy: Policy, program: string, role: Role, place: string): Decision | undefined {
  const [, address, port] = PLACE.exec(place) ?? []
  if (port !== undefined) return policy.decide(program, role, address, Number(port))
  return place === '' ? undefined : policy.decidePath(program, role, place)
}

function changeOf(
  decision: Decision | undefined,
  now: string,
  reason: string | undefined,
): string | undefined {
  if (decision === undefined) return undefined
  const { use, because } = decision
  const mayBeFast = reason === undefined || reason === 'STARTED_ON_TCP'
  if (mayBeFast) return use === 'tcp' ? `${now} -> tcp: ${because}` : undefined
  if (use === 'require') return `${now} (${reason}) -> fails: ${because}`
  return use === 'fast' && reason === 'POLICY' ? `${now} -> may be fast: ${because}` : undefined
}

/** Equal lines become one with their number. */
function counted(lines: readonly string[]): string[] {
  const counts = new Map<string, number>()
  for (const line of lines) counts.set(line, (counts.get(line) ?? 0) + 1)
  return [...counts].map(([line, count]) => (count === 1 ? line : `${count} times ${line}`))
}
