/** Who talks to whom, as a picture: clients on the left, their servers to the right of them. */
import type { ShownEdge, ShownProgram, Snapshot } from '../snapshot-types.ts'
import { amount, shortName } from './format.ts'
import { html, useMemo } from './preact.js'

/** More programs than this are drawn one box for all processes of a program. */
const BOXES_MAX = 60
/** Of the rest, the picture has no more than the busiest. */
const GROUPS_MAX = 120
const COLUMNS_MAX = 5
const BOX = { width: 190, height: 36, gapX: 110, gapY: 12, margin: 16 }

interface Box {
  readonly id: string
  readonly name: string
  readonly note: string
  readonly isRelinked: boolean
  column: number
  row: number
}

interface Line {
  readonly from: Box
  readonly to: Box
  readonly isFast: boolean
  readonly label: string
  readonly rate: number
}

interface GraphProps {
  readonly snapshot: Snapshot
  readonly selected: string | undefined
  readonly select: (id: string | undefined) => void
}

export function Graph({ snapshot, selected, select }: GraphProps): object {
  const { boxes, lines, isGrouped } = useMemo(() => layOut(snapshot), [snapshot])
  const columns = Math.max(0, ...boxes.map(({ column }) => column)) + 1
  const rows = Math.max(0, ...boxes.map(({ row }) => row)) + 1
  const width = 2 * BOX.margin + columns * (BOX.width + BOX.gapX) - BOX.gapX
  const height = 2 * BOX.margin + rows * (BOX.height + BOX.gapY) - BOX.gapY
  return html`<section aria-labelledby="graph-title">
    <h2 id="graph-title">Who talks to whom</h2>
    <p class="quiet key">Choose a program to see its connections only.<span>fast</span><span class="slow">TCP or a pipe</span>${
      isGrouped && ' All processes of a program are one box.'
    }</p>
    ${
      boxes.length === 0
        ? html`<p class="quiet">There is no connection.</p>`
        : html`<div class="graph"><svg id="graph" width=${width} height=${height} role="group" aria-label="Programs and their connections">
            ${lines.map(drawLine)}
            ${boxes.map(box => drawBox(box, isGrouped, selected, select))}
          </svg></div>`
    }
  </section>`
}

function drawBox(
  { id, name, note, isRelinked, column, row }: Box,
  isGrouped: boolean,
  selected: string | undefined,
  select: (id: string | undefined) => void,
): object {
  const choose = (): void => {
    if (!isGrouped) select(selected === id ? undefined : id)
  }
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key !== 'Enter' && event.key !== ' ') return
    event.preventDefault()
    choose()
  }
  const kind = isRelinked ? 'program relinked' : 'program'
  // Begins with the visible text (WCAG 2.5.3).
  const label = `${cut(name)} ${cut(note)}${isRelinked ? '' : ', not relinked'}`
  return html`<g key=${id} class=${kind} transform="translate(${xOf(column)}, ${yOf(row)})" role="button" tabindex="0"
      aria-pressed=${selected === id ? 'true' : 'false'} aria-label=${label} onClick=${choose} onKeyDown=${onKeyDown}>
    <rect width=${BOX.width} height=${BOX.height} rx="5" />
    <text x="8" y="15">${cut(name)}</text>${' '}
    <text x="8" y="29" class="quiet">${cut(note)}</text>
  </g>`
}

function drawLine({ from, to, isFast, label, rate }: Line): object {
  const isBack = to.column <= from.column
  const x1 = xOf(from.column) + BOX.width
  const y1 = yOf(from.row) + BOX.height / 2
  const x2 = isBack ? xOf(to.column) + BOX.width : xOf(to.column)
  const y2 = yOf(to.row) + BOX.height / 2
  const bend = BOX.gapX / 2
  const path = `M${x1},${y1} C${x1 + bend},${y1} ${isBack ? x2 + bend : x2 - bend},${y2} ${x2},${y2}`
  const strength = 1 + Math.min(5, Math.log10(1 + rate) / 2)
  return html`<path key=${`${from.id} ${to.id} ${isFast}`} class=${isFast ? '' : 'slow'} d=${path} stroke-width=${strength.toFixed(1)}>
    <title>${from.name} to ${to.name}: ${label}</title></path>`
}

/** Boxes and lines from programs that have a connection. */
function layOut({ programs, edges }: Snapshot): { boxes: Box[]; lines: Line[]; isGrouped: boolean } {
  const connected = new Set(edges.flatMap(({ from, to }) => [from, to]))
  const shown = programs.filter(({ id, listeners }) => connected.has(id) || listeners.length > 0)
  const isGrouped = shown.length > BOXES_MAX
  const boxOf = new Map<string, Box>()
  const members = new Map<string, ShownProgram[]>()
  for (const program of shown) {
    const key = isGrouped ? `${program.program} ${program.isRelinked}` : program.id
    members.set(key, [...(members.get(key) ?? []), program])
  }
  const boxes: Box[] = []
  for (const [key, all] of [...members].slice(0, GROUPS_MAX)) {
    const [first] = all as [ShownProgram]
    const places = all.flatMap(({ listeners }) => listeners.map(({ local }) => local))
    const who =
      all.length > 1
        ? `${all.length} processes`
        : first.pid === undefined
          ? 'another host'
          : `process ${first.id}`
    const note =
      places.length === 0 ? who : `${who}, ${places[0]}${places.length > 1 ? ` +${places.length - 1}` : ''}`
    const name = first.pid === undefined ? first.program : shortName(first.program)
    const box = { id: key, name, note, isRelinked: first.isRelinked, column: 0, row: 0 }
    boxes.push(box)
    for (const { id } of all) boxOf.set(id, box)
  }
  const lines = joined(edges, boxOf)
  place(boxes, lines)
  return { boxes, lines, isGrouped }
}

/** One line for all connections of two boxes that are fast, and one for those that are not. */
function joined(edges: readonly ShownEdge[], boxOf: ReadonlyMap<string, Box>): Line[] {
  const found = new Map<
    string,
    { from: Box; to: Box; isFast: boolean; count: number; rate: number; wires: Set<string> }
  >()
  for (const { from, to, wire, reason, count, inRate, outRate } of edges) {
    const a = boxOf.get(from)
    const b = boxOf.get(to)
    if (a === undefined || b === undefined) continue
    const isFast = reason === undefined
    const key = `${a.id}\n${b.id}\n${isFast}`
    const line = found.get(key) ?? { from: a, to: b, isFast, count: 0, rate: 0, wires: new Set() }
    line.count += count
    line.rate += inRate + outRate
    line.wires.add(reason === undefined ? wire : `${wire}, ${reason}`)
    found.set(key, line)
  }
  return [...found.values()].map(({ from, to, isFast, count, rate, wires }) => {
    const label = `${count} by ${[...wires].join('; ')}${rate > 0 ? `, ${amount(rate)}B/s` : ''}`
    return { from, to, isFast, label, rate }
  })
}

/** A server stands right of its clients as far as there is no circle; boxes of one column stand near those they talk to. */
function place(boxes: readonly Box[], lines: readonly Line[]): void {
  for (let pass = 1; pass < COLUMNS_MAX; pass++)
    for (const { from, to } of lines)
      if (from !== to && to.column <= from.column) to.column = Math.min(from.column + 1, COLUMNS_MAX - 1)
  const columns = Array.from({ length: COLUMNS_MAX }, (_, column) =>
    boxes.filter(box => box.column === column),
  )
  for (const column of columns) {
    const wanted = new Map(column.map(box => [box, middleOf(box, lines)]))
    column.sort(
      (a, b) =>
        (wanted.get(a) as number) - (wanted.get(b) as number) ||
        a.name.localeCompare(b.name) ||
        a.id.localeCompare(b.id),
    )
    for (const [row, box] of column.entries()) box.row = row
  }
}

/** The mean row of the clients of a box. */
function middleOf(box: Box, lines: readonly Line[]): number {
  const rows = lines
    .filter(({ from, to }) => to === box && from.column < box.column)
    .map(({ from }) => from.row)
  return rows.length === 0 ? 0 : rows.reduce((sum, row) => sum + row, 0) / rows.length
}

function xOf(column: number): number {
  return BOX.margin + column * (BOX.width + BOX.gapX)
}

function yOf(row: number): number {
  return BOX.margin + row * (BOX.height + BOX.gapY)
}

function cut(text: string): string {
  return text.length > 28 ? `${text.slice(0, 27)}…` : text
}
