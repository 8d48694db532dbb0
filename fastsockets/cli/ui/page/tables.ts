/** The tables of the page. */
import type { ShownEdge, ShownName, ShownProgram, ShownReason, Snapshot } from '../snapshot-types.ts'
import { amount, shortName } from './format.ts'
import { html } from './preact.js'
import { type Column, Table } from './table.ts'

const PROGRAMS: readonly Column<ShownProgram>[] = [
  { title: 'process', value: ({ pid }) => pid ?? -1, text: ({ id }) => id },
  { title: 'program', value: ({ program }) => program },
  { title: 'user', value: ({ uid }) => uid ?? -1, text: ({ uid }) => String(uid ?? '-') },
  {
    title: 'listens on',
    value: ({ listeners }) =>
      listeners
        .map(({ local, reason }) => (reason === undefined ? local : `${local} (not fast: ${reason})`))
        .join(', '),
  },
  { title: 'sockets', value: ({ socketCount }) => socketCount, isNumber: true },
  { title: 'opened', value: ({ opened }) => opened, isNumber: true },
  {
    title: 'in',
    value: ({ inRate }) => inRate,
    text: ({ inRate }) => `${amount(inRate)}B/s`,
    isNumber: true,
  },
  {
    title: 'out',
    value: ({ outRate }) => outRate,
    text: ({ outRate }) => `${amount(outRate)}B/s`,
    isNumber: true,
  },
]

export function Programs({ programs }: Snapshot): object {
  const rows = programs.filter(({ isRelinked }) => isRelinked)
  const nothing = 'No relinked process of this user is running.'
  return html`<${Table} id="programs" title="Relinked programs" nothing=${nothing} columns=${PROGRAMS} rows=${rows} keyOf=${({ id }: ShownProgram) => id} first=${6} />`
}

/** `selected`: only the connections of this program. */
export function Connections({
  snapshot,
  selected,
}: {
  snapshot: Snapshot
  selected: string | undefined
}): object {
  const { programs, edges } = snapshot
  const names = new Map(
    programs.map(({ id, program, pid }) => [
      id,
      pid === undefined ? program : `${shortName(program)} [${id}]`,
    ]),
  )
  const nameOf = (id: string): string => names.get(id) ?? id
  const columns: Column<ShownEdge>[] = [
    { title: 'client', value: ({ from }) => nameOf(from) },
    { title: 'server', value: ({ to }) => nameOf(to) },
    { title: 'address', value: ({ place }) => place },
    { title: 'wire', value: ({ wire }) => wire, className: wireClass },
    { title: 'count', value: ({ count }) => count, isNumber: true },
    {
      title: 'sent',
      value: ({ bytesOut }) => bytesOut,
      text: ({ bytesOut }) => `${amount(bytesOut)}B`,
      isNumber: true,
    },
    {
      title: 'received',
      value: ({ bytesIn }) => bytesIn,
      text: ({ bytesIn }) => `${amount(bytesIn)}B`,
      isNumber: true,
    },
    {
      title: 'now',
      value: ({ inRate, outRate }) => inRate + outRate,
      text: ({ inRate, outRate }) => `${amount(inRate + outRate)}B/s`,
      isNumber: true,
    },
    { title: 'why not fast', value: ({ reason = '' }) => reason },
  ]
  const rows = edges.filter(({ from, to }) => selected === undefined || from === selected || to === selected)
  return html`<${Table} id="connections" title="Connections" nothing="There is none." columns=${columns} rows=${rows} keyOf=${keyOfEdge} first=${7} />`
}

function wireClass({ reason }: ShownEdge): string {
  return reason === undefined ? 'fast' : 'slow'
}

function keyOfEdge({ from, to, place, wire, reason = '' }: ShownEdge): string {
  return [from, to, place, wire, reason].join(' ')
}

const REASONS: readonly Column<ShownReason>[] = [
  { title: 'reason', value: ({ code }) => code },
  { title: 'connections so far', value: ({ count }) => count, isNumber: true },
  { title: 'what happened', value: ({ text }) => text },
  { title: 'what to do', value: ({ remedy }) => remedy },
]

export function Reasons({ reasons }: Snapshot): object {
  const nothing = 'Every connection so far was fast.'
  return html`<${Table} id="reasons" title="Why connections were not fast" nothing=${nothing} columns=${REASONS} rows=${reasons} keyOf=${({ code }: ShownReason) => code} first=${1} />`
}

const NAMES: readonly Column<ShownName>[] = [
  { title: 'name', value: ({ name }) => name },
  { title: 'endpoint', value: ({ endpoint }) => endpoint },
  { title: 'lease', value: ({ lease }) => lease },
  { title: 'revision', value: ({ revision }) => revision, isNumber: true },
]

export function Names({ names: { problem, names, leases, isCut } }: Snapshot): object {
  const nothing =
    problem === undefined ? 'The daemon has no name.' : `The name service is not there: ${problem}`
  return html`<${Table} id="names" title="Names" nothing=${nothing} columns=${NAMES} rows=${names} keyOf=${({ name }: ShownName) => name} />
    ${leases.length > 0 && html`<p class="quiet">${leases.length} leases: ${leases.map(({ lease, owner, ttlMs }) => `${lease} of ${owner}, ${ttlMs / 1000} s`).join('; ')}</p>`}
    ${isCut && html`<p class="quiet">There are more than this page shows.</p>`}`
}
