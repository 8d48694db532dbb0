/** Where a relinked program is slower than plain TCP, and why. */
import { levelText, saysSomething } from '../interval.ts'
import { roundsOf } from '../report-table.ts'
import type { Report, Result } from '../result.ts'
import { BASELINE } from '../rounds.ts'
import { table } from './markdown.ts'
import { reasonFor } from './reasons.ts'
import { intervalCell, measurementCell, timesAsFastCell } from './result-cells.ts'

const RELINKED: readonly string[] = ['net-relinked', 'net-half-relinked', 'net-relinked-server']

const BESIDES = `Besides what this run shows:

- **Files.** A transfer that waits for files gains little. A program with more than 8 MB in its old generation is marked by V8 for
  every 20 to 30 MB of buffers. A relinked program has 3.5 MB more there, which may take it past that limit: it then serves files up
  to a quarter slower.
- **The first seconds.** V8 has not compiled our code yet, while the kernel's TCP is always warm. The suite \`warmup\` shows it second
  by second. It takes longest where many processes share few cores.
- **New connections** gain less than messages: Node makes and destroys a \`net.Socket\` on each side, whatever carries the bytes.
- **One core.** Two programs take turns, and a round trip takes about as long as with TCP. The suite \`oversubscribed\` measures
  more busy processes than cores.
- **A peer that is not relinked** is reached by plain TCP. The suite \`plain-peers\` measures what that costs:
  \`net-half-relinked\` is a relinked client of a plain server, \`net-relinked-server\` a plain client of a relinked server.
- **Own work.** A program that spends its time in a parser or a framework gains only the kernel's part: see \`apps\`.
`

export function worsePart({ results }: Report): string {
  const worse = results.filter(isWorse)
  const found =
    worse.length === 0
      ? 'In this run nothing was slower than plain TCP beyond doubt. Certainty takes five rounds.'
      : `Slower than plain TCP in this run:\n\n${worseTable(worse)}\n\nWhy:\n\n${reasonsFor(worse)}`
  return `## Where it does not help, and why\n\n${found}\n\n${BESIDES}`
}

/** The whole interval is on the worse side. */
function isWorse({ contestant, ratio, better, rounds }: Result): boolean {
  if (!saysSomething(rounds.length) || ratio?.to !== BASELINE || !RELINKED.includes(contestant)) return false
  return better === 'higher' ? ratio.high < 1 : ratio.low > 1
}

function worseTable(worse: readonly Result[]): string {
  const rows = worse.map(result => [
    measurementCell(result),
    result.contestant,
    timesAsFastCell(result),
    intervalCell(result),
  ])
  return table(['measurement', 'contestant', 'times as fast', levelText(roundsOf(worse))], rows, 2)
}

/** Each once. */
function reasonsFor(worse: readonly Result[]): string {
  const reasons = worse.map(reasonFor).filter(reason => reason !== undefined)
  const lines = reasons.map(([what, why]) => `- \`${what}\`: ${why}`)
  return [...new Set(lines)].join('\n')
}
