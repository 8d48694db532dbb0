/** Whether connections of a program of this user to one server would be fast, and if not why. */
import type { FallbackCode } from '../../reasons.ts'
import { explain } from '../explain/explain.ts'
import type { HostPort } from '../host-port.ts'
import type { Check } from './check.ts'

const HINTS: Partial<Record<FallbackCode, string>> = {
  NOT_RELINKED: 'start the server with: node --import fastsockets/register, or fastsockets run',
  STRANGER: 'another program listens there; let the server listen on another port',
  SILENT: 'the server, or a stranger on its hashed port, is busy or stopped',
  VERSION: 'install the same release of fastsockets for both programs',
  REMOTE_HOST:
    'between hosts it takes RDMA, and a host in a subnet of the device or named in a rule of the policy: docs/guide/rdma.md',
  NO_RENDEZVOUS:
    'containers of one host need a folder that both can write to: docs/guide/containers.md; hosts need RDMA: docs/guide/rdma.md',
  OTHER_HOST: 'between hosts it takes RDMA: docs/guide/rdma.md',
  OTHER_USER: 'run both as one user, or name the other user in users: of both policies',
  HANDSHAKE: 'look with DEBUG=fastsockets:* on both sides',
  LIMIT: 'the server has as many peers as it takes',
  POLICY: 'see: fastsockets explain',
  POLICY_INVALID: 'mend it: fastsockets policy check',
}

/** One check for each address of the host. */
export async function pairChecks({ host, port }: HostPort): Promise<Check[]> {
  try {
    return (await explain(host, port)).map(({ address, reason, policy, foreign }): Check => {
      const name = `to ${address}`
      if (reason === undefined) return { name, state: 'ok', detail: `fast; policy: ${policy.because}` }
      if (reason.code === 'STARTED_ON_TCP') return { name, state: 'ok', detail: reason.text }
      const hint = foreign === undefined ? HINTS[reason.code] : undefined
      return { name, state: 'failed', detail: `${reason.code}: ${reason.text}`, ...(hint && { hint }) }
    })
  } catch (error) {
    return [{ name: `to ${host}`, state: 'failed', detail: (error as Error).message }]
  }
}
