import { basename } from 'node:path'
import type { ListenerStatus, PolicyStatus } from '../../status/decode-status.ts'
import { narrowAmount as amount } from '../ui/page/format.ts'
import type { RatedProcess, RatedSocket } from './rates.ts'
import type { StatusFilter } from './status-filter.ts'

const COLUMNS = {
  wire: 'text',
  side: 'text',
  state: 'text',
  'Recv-Q': 'number',
  'Send-Q': 'number',
  local: 'text',
  remote: 'text',
  in: 'number',
  out: 'number',
  'in/s': 'number',
  'out/s': 'number',
  credit: 'number',
  direct: 'number',
  zcopy: 'number',
  peer: 'text',
  reason: 'text',
} as const
const PEER_LENGTH_MAX = 40
const HEADINGS = Object.keys(COLUMNS)
const IS_NUMBER = Object.values(COLUMNS).map(kind => kind === 'number')

/** For people. */
export function renderStatus(processes: readonly RatedProcess[], filter: StatusFilter): string {
  if (processes.length === 0) {
    const { pid, ...others } = filter
    if (Object.keys(others).length > 0) return 'Nothing of the relinked processes of this user is like that.'
    return pid === undefined
      ? 'No relinked process of this user is running.'
      : `Process ${pid} is no relinked process of this user.`
  }
  return processes.map(renderProcess).join('\n\n')
}

function renderProcess(status: RatedProcess): string {
  return [...(status.isLoaded ? linesOf(status) : lightLinesOf(status)), ...rowsOf(status)].join('\n')
}

function rowsOf({ sockets }: RatedProcess): string[] {
  return sockets.length === 0 ? [] : renderRows([HEADINGS, ...sockets.map(cellsOf)])
}

/** Of a program in its first phase (status/light-thread.ts). */
function lightLinesOf({ pid, program, sockets, listeners }: RatedProcess): string[] {
  return [
    `${pid}  ${program}`,
    `  relinked, nothing loaded yet; ${sockets.length} over TCP; within this host they become fast once that pays`,
    ...listeners.map(({ local, acceptedTcp }) => `  listens on ${local}; ${acceptedTcp} open`),
  ]
}

function linesOf(status: RatedProcess): string[] {
  const { pid, thread, program, policy, sockets, listeners, poller, fallbacks, promoted, demoted, refusals } =
    status
  const count = (kind: string): number => sockets.filter(socket => socket.kind === kind).length
  const [tcp, udp] = [count('tcp'), count('udp')]
  const datagrams = status.datagramsIn + status.datagramsOut
  const list = (counts: Readonly<Record<string, number>>): string =>
    Object.entries(counts)
      .map(([code, count]) => `${code} ${count}`)
      .join(', ')
  const fallbackList = list(fallbacks)
  const refusalList = list(refusals)
  const hasMoved = promoted + demoted > 0 || refusalList !== ''
  return [
    `${pid}${thread === 0 ? '' : `, thread ${thread}`}  ${program}`,
    `  ${sockets.length - tcp - udp} fast, ${tcp} not; ${status.opened} opened so far; ` +
      `in ${amount(status.bytesIn)}B, out ${amount(status.bytesOut)}B; ` +
      `${amount(status.inRate)}B/s in, ${amount(status.outRate)}B/s out`,
    `  ${amount(poller.messages ?? 0)} messages, ${amount(poller.doorbells ?? 0)} doorbells, ` +
      `${amount(poller.sleeps ?? 0)} sleeps, ${amount(poller.emptyTurns ?? 0)} spins`,
    ...(udp + datagrams > 0
      ? [
          `  UDP: ${udp} bound; past the kernel ${amount(status.datagramsIn)} in, ${amount(status.datagramsOut)} out; ` +
            `dropped ${amount(status.droppedIn)} in, ${amount(status.droppedOut)} out`,
        ]
      : []),
    ...(hasMoved
      ? [`  moved: ${promoted} to the fast way, ${demoted} back to TCP; not moved: ${refusalList || 0}`]
      : []),
    ...(fallbackList === '' ? [] : [`  fallbacks: ${fallbackList}`]),
    ...(policy === undefined ? [] : [renderPolicy(policy)]),
    ...listeners.map(renderListener),
  ]
}

function renderPolicy({ file, state, version, ruleCount, hits }: PolicyStatus): string {
  const decided = Object.entries(hits).map(([rule, count]) =>
    rule === 'default' ? `default ${count}` : `rule ${rule} ${count}`,
  )
  const what = version === undefined ? '' : `, version ${version}, rules: ${ruleCount}`
  const list = decided.length === 0 ? '' : `; decisions: ${decided.join(', ')}`
  return `  policy ${file}: ${state}${what}${list}`
}

function renderListener({
  local,
  hashedPort,
  reason,
  acceptedFast,
  acceptedTcp,
  refusedTcp,
}: ListenerStatus): string {
  const port = hashedPort === undefined ? '' : `, hashed port ${hashedPort}`
  const how = reason === undefined ? port : `, not fast: ${reason}`
  const refused = refusedTcp === 0 ? '' : `, ${refusedTcp} refused`
  return `  listens on ${local}${how}; accepted ${acceptedFast} fast, ${acceptedTcp} over TCP${refused}`
}

function cellsOf(socket: RatedSocket): string[] {
  const { transport, role, local, remote, directShare, reason } = socket
  const number = (value: number | undefined): string => (value === undefined ? '-' : amount(value))
  return [
    socket.kind === 'raw' || socket.kind === 'dgram' ? `${transport} ${socket.kind}` : transport,
    role || '-',
    socket.state ?? '-',
    number(socket.recvQueue),
    number(socket.sendQueue),
    local || '-',
    remote || '-',
    number(socket.bytesIn),
    number(socket.bytesOut),
    number(socket.inRate),
    number(socket.outRate),
    number(socket.creditLeft),
    directShare === undefined ? '-' : `${Math.floor(directShare * 100)}%`,
    zcopyOf(socket),
    peerOf(socket),
    reason ?? '',
  ]
}

/** Process and program; the user only if it is another one, or all that is known. */
function peerOf({ peer, container }: RatedSocket): string {
  if (peer === undefined) return container === undefined ? '-' : `another container (uid ${container.uid})`
  const user = peer.uid === process.geteuid?.() ? '' : `, uid ${peer.uid}`
  const name = peer.thread === undefined ? peer.program : basename(peer.program)
  return `${name.slice(0, PEER_LENGTH_MAX)} (${peer.pid}${user})`
}

/** The share of all bytes, both ways, that were fetched from the writer's memory. */
function zcopyOf({
  zcopy,
  bytesIn = 0,
  bytesOut = 0,
  zcopyBytesIn = 0,
  zcopyBytesOut = 0,
}: RatedSocket): string {
  if (zcopy !== 'possible') return zcopy ?? '-'
  const share = bytesIn + bytesOut === 0 ? 0 : (zcopyBytesIn + zcopyBytesOut) / (bytesIn + bytesOut)
  return `${Math.floor(share * 100)}%`
}

function renderRows(rows: readonly string[][]): string[] {
  const widths = HEADINGS.map((_, column) => Math.max(...rows.map(row => (row[column] ?? '').length)))
  return rows.map(row => {
    const cells = row.map((cell, column) => {
      const width = widths[column] as number
      return IS_NUMBER[column] ? cell.padStart(width) : cell.padEnd(width)
    })
    return `  ${cells.join('  ')}`.trimEnd()
  })
}
