/** The page of the name-service daemon. */
import type { NamesSnapshot } from '../snapshot-types.ts'
import { live, State } from './live.ts'
import { html } from './preact.js'
import { type Column, Table } from './table.ts'

type Shown<K extends 'names' | 'leases' | 'watchers'> = NamesSnapshot[K][number]

const NAMES: readonly Column<Shown<'names'>>[] = [
  { title: 'name', value: ({ name }) => name },
  { title: 'endpoint', value: ({ endpoint }) => endpoint },
  { title: 'owner', value: ({ owner }) => owner },
  { title: 'lease', value: ({ lease }) => lease },
  { title: 'revision', value: ({ revision }) => revision, isNumber: true },
]
const LEASES: readonly Column<Shown<'leases'>>[] = [
  { title: 'lease', value: ({ lease }) => lease },
  { title: 'owner', value: ({ owner }) => owner },
  { title: 'names', value: ({ names }) => names, isNumber: true },
  { title: 'TTL', value: ({ ttlMs }) => ttlMs, text: ({ ttlMs }) => seconds(ttlMs), isNumber: true },
  {
    title: 'ends in',
    value: ({ expiresInMs = -1 }) => expiresInMs,
    text: ({ expiresInMs }) => (expiresInMs === undefined ? 'not known' : seconds(expiresInMs)),
    isNumber: true,
  },
]
const WATCHERS: readonly Column<Shown<'watchers'>>[] = [
  { title: 'owner', value: ({ owner }) => owner },
  { title: 'watches', value: ({ watched }) => watched.join(', ') },
  { title: 'state', value: ({ isCurrent }) => (isCurrent ? 'has every change' : 'behind') },
]

let snapshot: NamesSnapshot | undefined
let isLost = false

function page({ atMs, names, leases, watchers, isCut }: NamesSnapshot): object {
  const numbered = watchers.map((watcher, index) => ({ ...watcher, index }))
  return html`<header>
      <h1>Names</h1>
      <${State} atMs=${atMs} isLost=${isLost} server="the daemon" />
      ${isCut && html`<span class="quiet">The first of each only.</span>`}
    </header>
    <main>
      <${Table} id="names" title="Names" nothing="No name is registered." columns=${NAMES} rows=${names} keyOf=${({ name }: Shown<'names'>) => name} />
      <${Table} id="leases" title="Leases" nothing="There is no lease." columns=${LEASES} rows=${leases} keyOf=${({ lease }: Shown<'leases'>) => lease} />
      <${Table} id="watchers" title="Watchers" nothing="There are no watchers." columns=${WATCHERS} rows=${numbered} keyOf=${({ index }: { index: number }) => String(index)} />
    </main>`
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`
}

const { events, redraw } = live(
  () => snapshot && page(snapshot),
  () => {
    isLost = true
  },
)
events.addEventListener('snapshot', event => {
  snapshot = JSON.parse(event.data) as NamesSnapshot
  isLost = false
  redraw()
})
