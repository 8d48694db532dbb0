/** `fastsockets status --tree`: a line for each program that a program is connected to, with the wires and their rates. */
import { narrowAmount as amount } from '../ui/page/format.ts'
import type { RatedProcess, RatedSocket } from './rates.ts'

/** The connections of one process with one other. */
interface Branch {
  readonly name: string
  readonly sockets: RatedSocket[]
}

/** Each connection of which a client is shown stands below its client; others stand below their server. */
export function renderTree(processes: readonly RatedProcess[]): string {
  if (processes.length === 0) return 'No relinked process of this user is running.'
  const shown = new Set(processes.map(({ pid, thread }) => `${pid} ${thread}`))
  return processes
    .map(process => {
      const branches = branchesOf(process, shown)
      const lines = branches.map(
        (branch, i) => `${i < branches.length - 1 ? '├─' : '└─'} ${renderBranch(branch)}`,
      )
      return [titleOf(process), ...lines].join('\n')
    })
    .join('\n')
}

function titleOf({ pid, thread, program, listeners }: RatedProcess): string {
  const places = listeners.map(({ local }) => local)
  const listens = places.length === 0 ? '' : `  (listens on ${places.join(', ')})`
  return `${nameOf(pid, thread, program)}${listens}`
}

function nameOf(pid: number, thread: number | undefined, program: string): string {
  return `${program || '?'} [${pid}${thread ? `, thread ${thread}` : ''}]`
}

function branchesOf({ sockets }: RatedProcess, shown: ReadonlySet<string>): Branch[] {
  const branches = new Map<string, Branch>()
  for (const socket of sockets) {
    const { peer, role, remote, container } = socket
    // A UDP socket may send to any address.
    if (socket.kind === 'udp') continue
    // It stands below its client.
    if (role === 'server' && peer?.thread !== undefined && shown.has(`${peer.pid} ${peer.thread}`)) continue
    const elsewhere = container === undefined ? '' : `, another container (uid ${container.uid})`
    const other =
      peer === undefined
        ? `${remote.replace(/:\d+$/, '') || '?'}${elsewhere}`
        : nameOf(peer.pid, peer.thread, peer.program)
    const place = role === 'client' ? ` ${remote || '?'}` : ''
    const name = `${role === 'client' ? '→' : '←'}${place}  ${other}`
    const branch = branches.get(name)
    if (branch === undefined) branches.set(name, { name, sockets: [socket] })
    else branch.sockets.push(socket)
  }
  return [...branches.values()]
}

function renderBranch({ name, sockets }: Branch): string {
  const wires = new Map<string, RatedSocket[]>()
  for (const socket of sockets) {
    const { transport, reason } = socket
    const wire = reason === undefined ? transport : `${transport} (${reason})`
    wires.set(wire, [...(wires.get(wire) ?? []), socket])
  }
  const parts = [...wires].map(([wire, all]) => {
    const sum = (of: (socket: RatedSocket) => number | undefined): number =>
      all.reduce((total, socket) => total + (of(socket) ?? 0), 0)
    const inRate = sum(socket => socket.inRate)
    const outRate = sum(socket => socket.outRate)
    const rates = inRate + outRate === 0 ? '' : `, ${amount(inRate)}B/s in, ${amount(outRate)}B/s out`
    const bytes = `in ${amount(sum(socket => socket.bytesIn))}B, out ${amount(sum(socket => socket.bytesOut))}B`
    return `${all.length} ${wire}: ${bytes}${rates}`
  })
  return `${name}  ${parts.join('; ')}`
}
