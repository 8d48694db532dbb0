/**
 * Whether the client of a connection over TCP may be relinked, as far as the kernel tells. A relinked program in its light phase shows
 * itself to no one, so all that can be said is whether a client is none, or has a sign of it.
 */
import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { basename } from 'node:path'
import { reasonAgainstFolder } from '../../nic/index.ts'
import type { FourAddresses } from '../handle/tcp-below.ts'
import { withoutMapping } from '../host/addresses.ts'
import { kernelSockets } from '../host/kernel-sockets.ts'
import { processesOf } from '../host/socket-owners.ts'
import { allowsUser } from '../policy/own-policy.ts'
import { PAGE_NAME } from '../status/status-layout.ts'

/** `impossible`: of a user that the policy does not allow, of another host, or no Node. `unknown`: a Node without a sign. `possible`: a sign, or not found. */
export type Verdict = 'impossible' | 'unknown' | 'possible'

/** A smaller executable does not contain Node; one that links to its library is called `node`. */
const NODE_SIZE_MIN = 30 * 1024 * 1024
/** In the command line, or in NODE_OPTIONS. */
const SIGN = 'fastsockets/register'

/** One verdict for each connection, which this process has accepted. */
export function judgeClients(connections: readonly FourAddresses[]): Verdict[] {
  try {
    return judge(connections)
  } catch {
    // Without /proc nothing is known.
    return connections.map(() => 'possible')
  }
}

function judge(connections: readonly FourAddresses[]): Verdict[] {
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
      verdicts[at] = allowsUser(uid) ? 'unknown' : 'impossible'
      // A client that has already closed has no process.
      if (allowsUser(uid) && inode !== 0) byInode.set(inode, at)
    }
  }
  if (byInode.size === 0) return verdicts
  for (const [inode, pid] of processesOf(byInode)) verdicts[byInode.get(inode) as number] = judgeProcess(pid)
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
    const fds = readdirSync(`${folder}/fd`)
    if (fds.some(fd => readlinkSync(`${folder}/fd/${fd}`).includes(PAGE_NAME))) return 'possible'
    const isSmall = statSync(`${folder}/exe`).size < NODE_SIZE_MIN
    return isSmall && !basename(readlinkSync(`${folder}/exe`)).startsWith('node') ? 'impossible' : 'unknown'
  } catch {
    return 'possible'
  }
}
