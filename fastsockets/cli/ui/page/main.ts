/** The page: receives a snapshot a second, and draws it anew. */
import type { Snapshot, Totals } from '../snapshot-types.ts'
import { Charts } from './charts.ts'
import { Graph } from './graph.ts'
import { live, State } from './live.ts'
import { html, useState } from './preact.js'
import { Connections, Names, Programs, Reasons } from './tables.ts'

const HISTORY_LENGTH = 600
let history: Totals[] = []
let snapshot: Snapshot | undefined
let isLost = false

interface PageProps {
  readonly snapshot: Snapshot
  readonly history: readonly Totals[]
  readonly isLost: boolean
}

function Page({ snapshot, history, isLost }: PageProps): object {
  const [selected, select] = useState<string | undefined>(undefined)
  const isThere = snapshot.programs.some(({ id }) => id === selected)
  const chosen = isThere ? selected : undefined
  return html`<a class="skip" href="#connections-title">To the tables</a>
    <header>
      <h1>Fast Sockets</h1>
      <${State} atMs=${snapshot.atMs} isLost=${isLost} server="fastsockets ui" />
      ${snapshot.isCut && html`<span class="quiet">The busiest programs and connections only.</span>`}
    </header>
    <main>
      <${Charts} history=${history} />
      <${Graph} snapshot=${snapshot} selected=${chosen} select=${select} />
      ${
        chosen !== undefined &&
        html`<p><button type="button" class="plain" onClick=${() => select(undefined)}>Show the connections of all programs</button></p>`
      }
      <${Connections} snapshot=${snapshot} selected=${chosen} />
      <${Programs} ...${snapshot} />
      <${Reasons} ...${snapshot} />
      <section aria-labelledby="policy-title"><h2 id="policy-title">Policy in force</h2><pre id="policy">${snapshot.policy.join('\n')}</pre></section>
      <${Names} ...${snapshot} />
    </main>`
}

const { events, redraw } = live(
  () => snapshot && html`<${Page} snapshot=${snapshot} history=${history} isLost=${isLost} />`,
  () => {
    isLost = true
  },
)
events.addEventListener('history', event => {
  history = JSON.parse(event.data) as Totals[]
})
events.addEventListener('snapshot', event => {
  snapshot = JSON.parse(event.data) as Snapshot
  if (history.at(-1)?.atMs !== snapshot.totals.atMs)
    history = [...history.slice(1 - HISTORY_LENGTH), snapshot.totals]
  isLost = false
  redraw()
})
