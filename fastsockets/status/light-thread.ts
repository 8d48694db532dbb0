/**
 * Programs in their first phase (relink/light-phase.ts): nothing is loaded that could keep a status page. Each keeps the preload
 * of this package open, and is found by that. The kernel tells its connections, all of which are over TCP, and its UDP sockets.
 */
import { existsSync, readFileSync, readlinkSync } from 'node:fs'
import { resolve } from 'node:path'
import { findTcpSocket, TCP_LISTEN } from '../../nic/index.ts'
import { hashedPorts } from '../bootstrap/hashed-port.ts'
import { reasonAgainstPeer } from '../bootstrap/remote-hosts.ts'
import type { KernelSocket, KernelTables } from '../host/kernel-sockets.ts'
import { inodeOfLink } from '../host/socket-owners.ts'
import { programOf } from '../policy/own-policy.ts'
import type { FallbackCode } from '../reasons.ts'
import type { ListenerStatus, SocketStatus, ThreadStatus } from './decode-status.ts'
import { commandOf, placeText } from './kernel-peers.ts'
import { LISTENER_STATE, ROWS_MAX } from './status-layout.ts'

/** Also of another copy of this package, or of one that was replaced since. */
const MARK = /\/fastsockets\/relink\/preload-[\w-]+\.cjs( \(deleted\))?$/
/** proc(5): the place of `starttime` behind the program's name, in ticks of 10 ms since the boot. */
const START_TIME = 19
const TICK_MS = 10
/** Options of Node with a value as an argument of its own. */
const WITH_VALUE = ['-r', '--require', '--import', '--loader', '--experimental-loader', '-C', '--conditions']

/** `links`: of its descriptors. */
export function isInFirstPhase(links: readonly string[]): boolean {
  return links.some(link => MARK.test(link))
}

/** The main thread of process `pid`, if it is in its first phase. `loaded` are the threads that have a page. */
export function lightThread(
  pid: number,
  links: readonly string[],
  loaded: readonly ThreadStatus[],
  tables: KernelTables,
): ThreadStatus | undefined {
  if (loaded.some(({ thread }) => thread === 0) || !isInFirstPhase(links)) return undefined
  const inodes = new Set(links.map(inodeOfLink))
  const isOnPage = ({ local, remote }: SocketStatus): boolean =>
    loaded.some(({ sockets }) => sockets.some(other => other.local === local && other.remote === remote))
  try {
    const all = tables.of(pid, 'tcp')
    const startMs = startOf(pid)
    const ports = new Set(all.filter(({ isListening }) => isListening).map(({ localPort }) => localPort))
    const own = all.filter(({ inode }) => inodes.has(inode)).slice(0, ROWS_MAX)
    const isHere = isOfOurNamespace(pid)
    const listening = own.filter(({ isListening }) => isListening)
    const sockets = own
      .filter(({ isListening }) => !isListening)
      .map(socket => socketOf(socket, startMs, ports.has(socket.localPort), isHere))
      .concat(udpSocketsOf(tables.of(pid, 'udp'), inodes, startMs))
      .filter(socket => !isOnPage(socket))
    return {
      thread: 0,
      startMs,
      program: programAt(pid) ?? commandOf(pid),
      isLoaded: false,
      sockets,
      listeners: listening
        .filter(one => !listening.some(other => isHashedPortOf(one, other)))
        .map(one =>
          listenerOf(
            one,
            startMs,
            sockets,
            listening.find(other => isHashedPortOf(other, one)),
          ),
        ),
      opened: sockets.length,
      bytesIn: 0,
      bytesOut: 0,
      zcopyBytesIn: 0,
      zcopyBytesOut: 0,
      datagramsIn: 0,
      datagramsOut: 0,
      droppedIn: 0,
      droppedOut: 0,
      fallbacks: {},
      promoted: 0,
      demoted: 0,
      refusals: {},
      poller: {},
    }
  } catch {
    // It has ended meanwhile.
    return undefined
  }
}

function socketOf(socket: KernelSocket, startMs: number, isServers: boolean, isHere: boolean): SocketStatus {
  const { inode, local, localPort, remote, remotePort } = socket
  const bytes = isHere ? bytesOf(socket) : undefined
  return {
    row: inode,
    startMs,
    kind: 'tcp',
    transport: 'tcp',
    role: isServers ? 'server' : 'client',
    reason: isServers ? 'ACCEPTED' : reasonOfClient(socket, isHere),
    local: placeText(local, localPort),
    remote: placeText(remote, remotePort),
    bytesIn: bytes?.in ?? 0,
    bytesOut: bytes?.out ?? 0,
  }
}

/** Which addresses are elsewhere only a process of the same network namespace knows. */
function reasonOfClient({ remote, remotePort }: KernelSocket, isHere: boolean): FallbackCode {
  const reason = isHere ? reasonAgainstPeer({ address: remote, port: remotePort }) : undefined
  return reason?.code ?? 'STARTED_ON_TCP'
}

function udpSocketsOf(
  all: readonly KernelSocket[],
  inodes: ReadonlySet<number | undefined>,
  startMs: number,
): SocketStatus[] {
  return all
    .filter(({ inode }) => inodes.has(inode))
    .slice(0, ROWS_MAX)
    .map(({ inode, local, localPort, remote, remotePort }) => ({
      row: inode,
      startMs,
      kind: 'udp',
      transport: 'udp',
      role: '',
      local: placeText(local, localPort),
      remote: remotePort === 0 ? '' : placeText(remote, remotePort),
      bytesIn: 0,
      bytesOut: 0,
    }))
}

function bytesOf({
  local,
  localPort,
  remote,
  remotePort,
}: KernelSocket): { in: number; out: number } | undefined {
  const found = findTcpSocket({ address: local, port: localPort }, { address: remote, port: remotePort })
  return found?.state === TCP_LISTEN ? undefined : found?.bytes
}

/** Whether a process that has both listeners has opened the first one for the second one's callers. */
function isHashedPortOf(one: KernelSocket, { local, localPort }: KernelSocket): boolean {
  if (one.local !== local || one.localPort === localPort) return false
  return hashedPorts(localPort).includes(one.localPort)
}

function listenerOf(
  { inode, local, localPort }: KernelSocket,
  startMs: number,
  sockets: readonly SocketStatus[],
  hashed: KernelSocket | undefined,
): ListenerStatus {
  const accepted = sockets.filter(({ local: place }) => place.endsWith(`:${localPort}`))
  return {
    row: inode,
    startMs,
    state: LISTENER_STATE,
    local: placeText(local, localPort),
    ...(hashed && { hashedPort: hashed.localPort }),
    reason: 'STARTED_ON_TCP',
    acceptedFast: 0,
    acceptedTcp: accepted.length,
    refusedTcp: 0,
  }
}

/** sock_diag(7) knows no other network namespace. */
function isOfOurNamespace(pid: number): boolean {
  try {
    return readlinkSync(`/proc/${pid}/ns/net`) === readlinkSync('/proc/self/ns/net')
  } catch {
    return false
  }
}

/** As the process itself would say (`ownProgram`); undefined for one that is no file, or has another command line meanwhile. */
function programAt(pid: number): string | undefined {
  const [, ...args] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
  const [name] = args.filter((arg, i) => !arg.startsWith('-') && !WITH_VALUE.includes(args[i - 1] ?? ''))
  if (!name) return undefined
  const path = programOf(resolve(readlinkSync(`/proc/${pid}/cwd`), name))
  return existsSync(path) ? path : undefined
}

/** When process `pid` began, in ms since 1970. Throws if it is gone. */
function startOf(pid: number): number {
  const [, boot] = /^btime (\d+)$/m.exec(readFileSync('/proc/stat', 'latin1')) ?? []
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return Number(boot) * 1000 + Number(fields[START_TIME]) * TICK_MS
}
