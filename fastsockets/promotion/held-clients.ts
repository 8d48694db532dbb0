/** Whether the client of a connection over TCP may be relinked, as far as the kernel tells. */
import { readFileSync } from 'node:fs'
import { findTcpSocket, isOwnUser, reasonAgainstFolder, TCP_LISTEN } from '../../nic/index.ts'
import type { FourAddresses } from '../handle/tcp-below.ts'
import { withoutMapping } from '../host/addresses.ts'
import { linksOf, searchProcesses } from '../host/socket-owners.ts'
import { allowsUser } from '../policy/own-policy.ts'
import { isInFirstPhase } from '../status/light-thread.ts'
import { PAGE_NAME } from '../status/status-layout.ts'

/** `impossible`: of a user that the policy does not allow, of another host, or without a sign. `possible`: a sign, or not found. */
export type Verdict = 'impossible' | 'possible'

/** Questions to the kernel between two pauses. */
const ASKED_AT_ONCE = 32
/** In the command line, or in NODE_OPTIONS. */
const SIGN = 'fastsockets/register'

/** One verdict for each connection, which this process has accepted. Yields where the caller may pause. */
export function* judgeClients(connections: readonly FourAddresses[]): Generator<undefined, Verdict[]> {
  try {
    return yield* judge(connections)
  } catch {
    // Without /proc nothing is known.
    return connections.map(() => 'possible')
  }
}

function* judge(connections: readonly FourAddresses[]): Generator<undefined, Verdict[]> {
  const verdicts: Verdict[] = connections.map(() =>
    // Containers of this host have sockets in other tables.
    reasonAgainstFolder(false) === undefined ? 'possible' : 'impossible',
  )
  const byInode = new Map<number, number>()
  for (const [at, { client, server }] of connections.entries()) {
    if (at % ASKED_AT_ONCE === 0) yield
    const [near, far] = [placeOf(server), placeOf(client)]
    const found = findTcpSocket(far, near)
    if (found === undefined || found.state === TCP_LISTEN) {
      // Some kernels do not even tell of our own end.
      if (findTcpSocket(near, far) === undefined) verdicts[at] = 'possible'
      continue
    }
    const { uid, inode } = found
    // A client that has already closed has no inode. The process of another one may be hidden.
    const isOpen = allowsUser(uid) && inode !== 0
    verdicts[at] = isOpen ? 'possible' : 'impossible'
    // What reads the command line of a process waits for that process: not for one of another user.
    if (isOpen && isOwnUser(uid)) byInode.set(inode, at)
  }
  if (byInode.size === 0) return verdicts
  const judged = new Map<number, Verdict>()
  for (const found of searchProcesses(byInode)) {
    if (found === undefined) yield
    // Processes may share a socket.
    else if (judged.get(found[0]) !== 'possible') judged.set(found[0], judgeProcess(found[1]))
  }
  for (const [inode, verdict] of judged) verdicts[byInode.get(inode) as number] = verdict
  return verdicts
}

function placeOf({ address, port }: FourAddresses['client']): { address: string; port: number } {
  return { address: withoutMapping(address), port }
}

function judgeProcess(pid: string): Verdict {
  try {
    const folder = `/proc/${pid}`
    if (readFileSync(`${folder}/cmdline`, 'latin1').includes(SIGN)) return 'possible'
    if (readFileSync(`${folder}/environ`, 'latin1').includes(SIGN)) return 'possible'
    const links = linksOf(pid)
    return isInFirstPhase(links) || links.some(link => link.includes(PAGE_NAME)) ? 'possible' : 'impossible'
  } catch {
    return 'possible'
  }
}
