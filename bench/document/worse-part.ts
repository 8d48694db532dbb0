/** Where it is slower than plain TCP, and why. */
import { levelText, saysSomething } from '../interval.ts'
import { roundsOf } from '../report-table.ts'
import type { Report, Result } from '../result.ts'
import { BASELINE } from '../rounds.ts'
import { table } from './markdown.ts'
import { reasonFor } from './reasons.ts'
import { intervalCell, measurementCell, timesAsFastCell } from './result-cells.ts'

const RELINKED: readonly string[] = ['net-relinked', 'net-half-relinked', 'net-relinked-server']

const BESIDES = `Besides what this run shows:

- Transfers that wait for files gain little. A program that keeps more than 8 MB has all of it marked by V8 for every 20 to 30 MB of buffers, and
  what a relinked one keeps besides, 3.5 MB, may be what takes it there: then it serves files up to a quarter slower.
- The first seconds of a program, until V8 has compiled it: what the kernel does for TCP is warm, what we do instead is JavaScript that is
  new, and more function calls than a plain socket makes. The suite \`warmup\` shows second by second how it passes TCP; that takes longest
  where many processes share few cores, since their code also drives each other's out of the caches. The other suites measure warm
  programs, but for \`cpu\`, \`memory\` and the matrices of \`apps\`.
- New connections gain less than messages: most of what is left is Node's own, which makes, tells and takes down a \`net.Socket\` on
  each side, whatever carries the bytes.
- On a single core two programs take turns, and a round trip takes about as long as with TCP. Where there are more busy processes than
  cores, polling has to give way; the suite \`oversubscribed\` measures that.
- A peer that is not relinked gets plain TCP. What that costs is in the suite \`plain-peers\`: \`net-half-relinked\` is a relinked client of a plain server,
  \`net-relinked-server\` the other way round.
- A program whose time goes into its own work, such as a parser or a framework, gains only the part that was the kernel's: see the
  suite \`apps\`.
`

export function worsePart({ results }: Report): string {
  const worse = results.filter(isWorse)
  const found =
    worse.length === 0
      ? 'In this run nothing was slower than plain TCP beyond doubt, which takes five rounds.'
      : `What was slower than plain TCP in this run:\n\n${worseTable(worse)}\n\nWhy:\n\n${reasonsFor(worse)}`
  return `## Where it does not help, and why\n\n${found}\n\n${BESIDES}`
}

/** And the interval leaves no doubt. */
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
