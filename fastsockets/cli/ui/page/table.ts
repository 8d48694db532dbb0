/** A table that sorts by any column, and filters by text. */
import { html, useMemo, useState } from './preact.js'

const ROWS_MAX = 200

export interface Column<T> {
  readonly title: string
  /** What is sorted by; also what is shown, unless `text` says otherwise. */
  readonly value: (row: T) => string | number
  readonly text?: (row: T) => string
  readonly isNumber?: boolean
  readonly className?: (row: T) => string
}

interface TableProps<T> {
  readonly id: string
  readonly title: string
  /** Shown if there is no row at all. */
  readonly nothing: string
  readonly columns: readonly Column<T>[]
  readonly rows: readonly T[]
  readonly keyOf: (row: T) => string
  /** Sorted by this column at first, downwards. */
  readonly first?: number
}

export function Table<T>({ id, title, nothing, columns, rows, keyOf, first = 0 }: TableProps<T>): object {
  const [order, setOrder] = useState({ column: first, isDown: columns[first]?.isNumber === true })
  const [filter, setFilter] = useState('')
  const shown = useMemo(() => arrange(rows, columns, filter, order), [rows, filter, order])
  const more = shown.length - ROWS_MAX
  const sortBy = (column: number): void => {
    const isSame = order.column === column
    setOrder({ column, isDown: isSame ? !order.isDown : columns[column]?.isNumber === true })
  }
  return html`<section aria-labelledby=${`${id}-title`}>
    <h2 id=${`${id}-title`}>${title} <span class="quiet">${rows.length}</span></h2>
    ${
      rows.length === 0
        ? html`<p class="quiet">${nothing}</p>`
        : html`<label class="quiet">Show those that contain <input type="search" id=${`${id}-filter`} value=${filter}
            onInput=${(event: Event) => setFilter((event.target as HTMLInputElement).value)} /></label>
        <div class="scroll"><table id=${id}>
          <thead><tr>${columns.map(({ title, isNumber }, i) => {
            const sort = order.column !== i ? 'none' : order.isDown ? 'descending' : 'ascending'
            return html`<th key=${title} scope="col" class=${isNumber ? 'number' : ''} aria-sort=${sort}>
              <button type="button" onClick=${() => sortBy(i)}>${title}</button></th>`
          })}</tr></thead>
          <tbody>${shown
            .slice(0, ROWS_MAX)
            .map(
              row =>
                html`<tr key=${keyOf(row)}>${columns.map(
                  column => html`<td class=${classOf(column, row)}>${textOf(column, row)}</td>`,
                )}</tr>`,
            )}</tbody>
        </table></div>
        ${more > 0 && html`<p class="quiet">${more} more: narrow them down above.</p>`}`
    }
  </section>`
}

function classOf<T>({ isNumber, className }: Column<T>, row: T): string {
  return `${isNumber ? 'number ' : ''}${className?.(row) ?? ''}`
}

function textOf<T>({ value, text }: Column<T>, row: T): string {
  return text === undefined ? String(value(row)) : text(row)
}

function arrange<T>(
  rows: readonly T[],
  columns: readonly Column<T>[],
  filter: string,
  { column, isDown }: { column: number; isDown: boolean },
): readonly T[] {
  const sought = filter.trim().toLowerCase()
  const found = rows.filter(
    row => sought === '' || columns.some(one => textOf(one, row).toLowerCase().includes(sought)),
  )
  const { value } = columns[column] as Column<T>
  const sign = isDown ? -1 : 1
  return found.sort((a, b) => sign * compare(value(a), value(b)))
}

function compare(a: string | number, b: string | number): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b
  return String(a).localeCompare(String(b))
}
