/** The processes at the other end of TCP connections within this host, as `ss -p` finds them: by the inodes of their sockets. */
import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { shownText } from '../../nic/shown-text.ts'
import { kernelSockets } from '../host/kernel-sockets.ts'
import { processesOf } from '../host/socket-owners.ts'
import type { PeerProcess, SocketStatus } from './decode-status.ts'

/** The prefix of IPv4 addresses as a dual-stack server reports them. */
const MAPPED = /^\[::ffff:([\d.]+)\]/
const COMMAND_LENGTH_MAX = 120

/** By the socket's row. Processes that this user may not inspect, and those of other hosts and containers, are missing. */
export function kernelPeers(sockets: readonly SocketStatus[]): Map<SocketStatus, PeerProcess> {
  const found = new Map<SocketStatus, PeerProcess>()
  if (sockets.length === 0) return found
  try {
    const sought = new Map(
      sockets.map(socket => [`${withoutMapping(socket.remote)} ${withoutMapping(socket.local)}`, socket]),
    )
    const byInode = new Map<number, { socket: SocketStatus; uid: number }>()
    for (const family of [4, 6] as const) {
      for (const { local, localPort, remote, remotePort, uid, inode } of kernelSockets(family)) {
        const socket = sought.get(`${placeText(local, localPort)} ${placeText(remote, remotePort)}`)
        if (socket !== undefined && inode !== 0) byInode.set(inode, { socket, uid })
      }
    }
    if (byInode.size > 0) findOwners(byInode, found)
  } catch {
    // Without /proc no process can be found.
  }
  return found
}

export function withoutMapping(place: string): string {
  return place.replace(MAPPED, '$1')
}

/** As status pages have it. */
export function placeText(address: string, port: number): string {
  return withoutMapping(address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`)
}

function findOwners(
  byInode: Map<number, { socket: SocketStatus; uid: number }>,
  found: Map<SocketStatus, PeerProcess>,
): void {
  for (const [inode, pid] of processesOf(byInode)) {
    const { socket, uid } = byInode.get(inode) as { socket: SocketStatus; uid: number }
    found.set(socket, { pid: Number(pid), program: commandOf(pid), uid })
  }
}

/** The beginning of its command line. */
export function commandOf(pid: number | string): string {
  try {
    const [executable = '', ...args] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
    // Where Node is installed says little and may fill the line. A program that renamed itself stays as it is.
    const name = executable.includes(' ') ? executable : basename(executable)
    return shownText([name, ...args].join(' ').trim().slice(0, COMMAND_LENGTH_MAX))
  } catch {
    return ''
  }
}
