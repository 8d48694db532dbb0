/** Whether connections of a program of this user to one server would be fast, and if not why. */
import { reasonAgainstFolder } from '../../../nic/index.ts'
import { isReachableFromElsewhere, reasonAgainstPublished } from '../../bootstrap/neighbours.ts'
import type { FallbackCode } from '../../reasons.ts'
import { type Explanation, explain } from '../explain/explain.ts'
import type { HostPort } from '../host-port.ts'
import type { Check } from './check.ts'

const HINTS: Partial<Record<FallbackCode, string>> = {
  NOT_RELINKED: 'start the server with: node --import fastsockets/register, or fastsockets run',
  STARTED_ON_TCP: 'start the server with FASTSOCKETS_START=fast',
  STRANGER: 'another program listens there; let the server listen on another port',
  SILENT: 'the server, or a stranger on its hashed port, is busy or stopped',
  VERSION: 'install the same release of fastsockets for both programs',
  REMOTE_HOST:
    'between hosts it takes RDMA, and a host in a subnet of the device or named in a rule of the policy: docs/guide/rdma.md',
  NO_RENDEZVOUS:
    'containers of one host need one folder, which the server may write to: docs/guide/containers.md; hosts need RDMA: docs/guide/rdma.md',
  OTHER_HOST: 'between hosts it takes RDMA: docs/guide/rdma.md',
  OTHER_USER: 'run both as one user, or name the other user in users: of both policies',
  HANDSHAKE: 'look with DEBUG=fastsockets:* on both sides',
  DRIVER: 'the check "sealed memory files" says what to look for',
  LIMIT: 'the server has as many peers as it takes',
  POLICY: 'see: fastsockets explain',
  POLICY_INVALID: 'mend it: fastsockets policy check',
}

/** One check for each address of the host, and one more for a listener here that other containers may call. */
export async function pairChecks({ host, port }: HostPort): Promise<Check[]> {
  try {
    return (await explain(host, port)).flatMap(found => [pairCheck(found), ...publishedCheck(found, port)])
  } catch (error) {
    return [{ name: `to ${host}`, state: 'failed', detail: (error as Error).message }]
  }
}

function pairCheck({ address, outcome, reason, policy, foreign }: Explanation): Check {
  const name = `to ${address}`
  if (reason === undefined) return { name, state: 'ok', detail: `fast; policy: ${policy.because}` }
  if (reason.code === 'STARTED_ON_TCP' && outcome !== 'fails')
    return { name, state: 'ok', detail: reason.text }
  const hint = foreign === undefined ? HINTS[reason.code] : undefined
  return { name, state: 'failed', detail: `${reason.code}: ${reason.text}`, ...(hint && { hint }) }
}

/** Nothing for an address that no other container can call, or without a folder. */
function publishedCheck({ address, reason }: Explanation, port: number): Check[] {
  const isHere = reason === undefined && isReachableFromElsewhere(address)
  if (!isHere || reasonAgainstFolder(false) !== undefined) return []
  const name = `${address} for other containers`
  const against = reasonAgainstPublished(address, port)
  if (against === undefined) return [{ name, state: 'ok', detail: 'published in the rendezvous folder' }]
  return [{ name, state: 'note', detail: `not published: ${against}`, hint: HINTS.NO_RENDEZVOUS as string }]
}
