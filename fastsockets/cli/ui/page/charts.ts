/** Small charts of the last ten minutes. */
import type { Totals } from '../snapshot-types.ts'
import { amount } from './format.ts'
import { html } from './preact.js'

const LENGTH = 600
const HEIGHT = 40

interface Chart {
  readonly title: string
  readonly unit: string
  readonly isSlow?: boolean
  readonly of: (totals: Totals) => number
}

const CHARTS: readonly Chart[] = [
  { title: 'Fast connections', unit: '', of: ({ fast }) => fast },
  { title: 'Connections over TCP or a pipe', unit: '', isSlow: true, of: ({ slow }) => slow },
  { title: 'Bytes a second, fast', unit: 'B/s', of: ({ byteRate }) => byteRate },
  { title: 'Messages a second, fast', unit: '/s', of: ({ messageRate }) => messageRate },
]

export function Charts({ history }: { history: readonly Totals[] }): object {
  return html`<section aria-labelledby="charts-title">
    <h2 id="charts-title">The last ten minutes</h2>
    <div class="charts">${CHARTS.map(chart => draw(chart, history))}</div>
  </section>`
}

function draw({ title, unit, isSlow = false, of }: Chart, history: readonly Totals[]): object {
  const values = history.slice(-LENGTH).map(of)
  const now = values.at(-1) ?? 0
  const most = Math.max(1, ...values)
  const left = LENGTH - values.length
  const points = values.map(
    (value, i) => `${left + i},${(HEIGHT - 1 - (value / most) * (HEIGHT - 4)).toFixed(1)}`,
  )
  const label = `${title}: now ${amount(now)}${unit}, at most ${amount(most)}${unit} in the last ten minutes`
  return html`<figure class=${isSlow ? 'chart slow' : 'chart'} key=${title}>
    <figcaption class="quiet">${title}</figcaption>
    <b>${amount(now)}${unit}</b>
    <svg role="img" aria-label=${label} viewBox="0 0 ${LENGTH} ${HEIGHT}" preserveAspectRatio="none">
      <polyline points=${points.join(' ')} />
    </svg>
  </figure>`
}
