/** From the status pages of this user's processes to what the page shows. */
import { FALLBACK_REASONS, type FallbackCode } from '../../reasons.ts'
import { REMEDIES } from '../remedies.ts'
import type { RatedProcess, RatedSocket } from '../status/rates.ts'
import type { ShownEdge, ShownNames, ShownProgram, ShownReason, Snapshot } from './snapshot-types.ts'

/** The page shows so many programs, and so many edges: those with the most bytes a second. */
export const PROGRAMS_MAX = 2000
export const EDGES_MAX = 4000

export interface Surroundings {
  readonly policy: readonly string[]
  readonly names: ShownNames
}

/** `messagesBefore`: the sum of all programs' messages, `elapsedMs` ago. */
export function makeSnapshot(
  processes: readonly RatedProcess[],
  { policy, names }: Surroundings,
  { atMs, elapsedMs, messagesBefore }: { atMs: number; elapsedMs: number; messagesBefore: number },
): Snapshot {
  const { programs, edges } = joinEnds(processes)
  const shownEdges = [...edges.values()]
  const messages = messagesOf(processes)
  const isFast = ({ reason }: ShownEdge): boolean => reason === undefined
  const count = (all: readonly ShownEdge[]): number => all.reduce((sum, edge) => sum + edge.count, 0)
  return {
    atMs,
    uid: process.geteuid?.() ?? -1,
    programs: busiest([...programs.values()], PROGRAMS_MAX),
    edges: busiest(shownEdges, EDGES_MAX),
    isCut: programs.size > PROGRAMS_MAX || edges.size > EDGES_MAX,
    reasons: reasonsOf(processes),
    policy,
    names,
    totals: {
      atMs,
      fast: count(shownEdges.filter(isFast)),
      slow: count(shownEdges.filter(edge => !isFast(edge))),
      byteRate: shownEdges.reduce((sum, { inRate, outRate }) => sum + inRate + outRate, 0),
      messageRate: Math.max(0, Math.round(((messages - messagesBefore) * 1000) / elapsedMs)),
    },
  }
}

export function messagesOf(processes: readonly RatedProcess[]): number {
  return processes.reduce((sum, { poller }) => sum + (poller.messages ?? 0), 0)
}

/** A connection whose two ends are both seen counts once, as its client sees it. */
function joinEnds(processes: readonly RatedProcess[]): {
  programs: Map<string, ShownProgram>
  edges: Map<string, ShownEdge>
} {
  const programs = new Map(processes.map(process => [idOf(process.pid, process.thread), programOf(process)]))
  const edges = new Map<string, ShownEdge>()
  for (const process of processes) {
    const own = idOf(process.pid, process.thread)
    for (const socket of process.sockets) {
      const { peer, role, kind } = socket
      // A UDP socket may send to any address.
      if (kind === 'udp') continue
      const other = peer === undefined ? `host ${hostOf(socket)}` : idOf(peer.pid, peer.thread ?? 0)
      const isSeenByClient = role === 'server' && peer?.thread !== undefined && programs.has(other)
      if (isSeenByClient) continue
      if (!programs.has(other)) programs.set(other, strangerOf(other, socket))
      add(edges, edgeOf(socket, own, other))
    }
  }
  return { programs, edges }
}

function programOf(process: RatedProcess): ShownProgram {
  const { pid, thread, program, uid, startMs, listeners, sockets, opened, inRate, outRate, poller } = process
  return {
    id: idOf(pid, thread),
    pid,
    program,
    uid,
    isRelinked: true,
    startMs,
    listeners: listeners.map(({ local, reason, acceptedFast, acceptedTcp }) => ({
      local,
      ...(reason === undefined ? {} : { reason }),
      acceptedFast,
      acceptedTcp,
    })),
    socketCount: sockets.length,
    opened,
    inRate,
    outRate,
    messages: poller.messages ?? 0,
  }
}

/** The other end of a connection, of which no status page is known. */
function strangerOf(id: string, socket: RatedSocket): ShownProgram {
  const { peer } = socket
  return {
    id,
    pid: peer?.pid,
    program: peer?.program ?? hostOf(socket),
    uid: peer?.uid,
    isRelinked: false,
    startMs: undefined,
    listeners: [],
    socketCount: 0,
    opened: 0,
    inRate: 0,
    outRate: 0,
    messages: 0,
  }
}

function edgeOf(socket: RatedSocket, own: string, other: string): ShownEdge {
  const { role, remote, local, transport, reason, bytesIn, bytesOut, inRate = 0, outRate = 0 } = socket
  const isClient = role === 'client'
  return {
    from: isClient ? own : other,
    to: isClient ? other : own,
    place: isClient ? remote : local,
    wire: transport,
    ...(reason === undefined ? {} : { reason }),
    count: 1,
    // As the client sees it.
    bytesIn: isClient ? bytesIn : bytesOut,
    bytesOut: isClient ? bytesOut : bytesIn,
    inRate: isClient ? inRate : outRate,
    outRate: isClient ? outRate : inRate,
  }
}

function add(edges: Map<string, ShownEdge>, edge: ShownEdge): void {
  const { from, to, place, wire, reason = '' } = edge
  const key = [from, to, place, wire, reason].join('\n')
  const known = edges.get(key)
  if (known === undefined) return void edges.set(key, edge)
  edges.set(key, {
    ...known,
    count: known.count + 1,
    bytesIn: known.bytesIn + edge.bytesIn,
    bytesOut: known.bytesOut + edge.bytesOut,
    inRate: known.inRate + edge.inRate,
    outRate: known.outRate + edge.outRate,
  })
}

function reasonsOf(processes: readonly RatedProcess[]): ShownReason[] {
  const counts = new Map<string, number>()
  for (const { fallbacks } of processes)
    for (const [code, count] of Object.entries(fallbacks)) counts.set(code, (counts.get(code) ?? 0) + count)
  return [...counts]
    .map(([code, count]) => ({
      code,
      text: FALLBACK_REASONS[code as FallbackCode],
      remedy: REMEDIES[code as FallbackCode],
      count,
    }))
    .sort((a, b) => b.count - a.count)
}

function busiest<T extends { readonly inRate: number; readonly outRate: number }>(
  all: T[],
  max: number,
): T[] {
  if (all.length <= max) return all
  return all.sort((a, b) => b.inRate + b.outRate - a.inRate - a.outRate).slice(0, max)
}

function idOf(pid: number, thread: number): string {
  return thread === 0 ? String(pid) : `${pid}.${thread}`
}

/** The address without its port; of a unix socket the path. */
function hostOf({ role, remote }: RatedSocket): string {
  if (remote === '') return role === 'client' ? 'unknown' : 'unix clients'
  return remote.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1')
}
