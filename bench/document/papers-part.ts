/** The figures of the papers beside ours. */
import { geometricMean } from 'simple-statistics'
import { parametersText } from '../report-table.ts'
import type { Report, Result } from '../result.ts'
import { BASELINE } from '../rounds.ts'
import { timesAsFast } from '../times-as-fast.ts'
import { table } from './markdown.ts'
import { type HereFigure, PAPER_FIGURES } from './papers.ts'

const RELINKED = 'net-relinked'

export function papersPart(report: Report): string {
  const rows = PAPER_FIGURES.map(({ paper, what, theirs, tcp, timesAsFast: times = '', source, here }) => {
    return [paper, what, theirs, tcp, times, source, here === undefined ? '' : hereText(report, here)]
  })
  const head = ['paper', 'what', 'theirs', 'their TCP', 'times as fast', 'where', 'here, relinked to TCP']
  return `## Beside the papers

The papers measured other networks and processors in other decades, and crossed a wire where this run stays on one host. Only the ratio to
the TCP of the same machine can be compared, and only roughly.

${table(head, rows)}`
}

export function hereText({ results }: Report, { suite, metric, parameters, of }: HereFigure): string {
  const measured = results.filter(
    result =>
      result.suite === suite &&
      result.metric === metric &&
      Object.entries(parameters).every(([name, value]) => result.parameters[name] === value),
  )
  const relinked = measured.filter(
    ({ contestant, ratio }) => contestant === RELINKED && ratio?.to === BASELINE,
  )
  const [first] = relinked
  if (first === undefined) return 'not in this run'
  if (of === 'mean') {
    return `${short(geometricMean(relinked.map(timesAsFast)))}, geometric mean of ${relinked.length} sizes`
  }
  if (of === 'peak') {
    const plain = measured.filter(({ contestant }) => contestant === BASELINE)
    return `${short(peakOf(relinked) / peakOf(plain))}, peak to peak of ${relinked.length} sizes`
  }
  return `${short(timesAsFast(first))}, ${parametersText(first.parameters)}`
}

/** Of rates. */
function peakOf(results: readonly Result[]): number {
  return Math.max(...results.map(({ median }) => median))
}

function short(times: number): string {
  return times.toPrecision(2)
}
