/** Whether the client of a connection over TCP may be relinked, as far as the kernel tells. */
import { readFileSync } from 'node:fs'
import { reasonAgainstFolder } from '../../nic/index.ts'
import type { FourAddresses } from '../handle/tcp-below.ts'
import { withoutMapping } from '../host/addresses.ts'
import { kernelSockets } from '../host/kernel-sockets.ts'
import { linksOf, searchProcesses } from '../host/socket-owners.ts'
import { allowsUser } from '../policy/own-policy.ts'
import { isInFirstPhase } from '../status/light-thread.ts'
import { PAGE_NAME } from '../status/status-layout.ts'

/** `impossible`: of a user that the policy does not allow, of another host, or without a sign. `possible`: a sign, or not found. */
export type Verdict = 'impossible' | 'possible'

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
  const sought = new Map(connections.map((ends, at) => [keyOf(ends), at]))
  const verdicts: Verdict[] = connections.map(() =>
    // Containers of this host have sockets in other tables.
    reasonAgainstFolder(false) === undefined ? 'possible' : 'impossible',
  )
  const byInode = new Map<number, number>()
  for (const family of [4, 6] as const) {
    for (const { local, localPort, remote, remotePort, uid, inode } of kernelSockets(family)) {
      const at = sought.get(placesKey(local, localPort, remote, remotePort))
      if (at === undefined) continue
      // A client that has already closed has no inode. The process of another one may be hidden.
      const isOpen = allowsUser(uid) && inode !== 0
      verdicts[at] = isOpen ? 'possible' : 'impossible'
      if (isOpen) byInode.set(inode, at)
    }
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

function keyOf({ client, server }: FourAddresses): string {
  return placesKey(client.address, client.port, server.address, server.port)
}

function placesKey(local: string, localPort: number, remote: string, remotePort: number): string {
  return `${withoutMapping(local)} ${localPort} ${withoutMapping(remote)} ${remotePort}`
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
