/** Cells of tables of results. */
import { saysSomething } from '../interval.ts'
import { axisTitle } from '../pictures/titles.ts'
import { parametersText } from '../report-table.ts'
import type { Result } from '../result.ts'
import { timesAsFast } from '../times-as-fast.ts'
import { text } from './markdown.ts'

export function measurementCell({ suite, metric, parameters }: Result): string {
  const of = text(parametersText(parameters))
  return `${suite}, ${axisTitle(metric)}${of === '' ? '' : `, ${of}`}`
}

export function timesAsFastCell(result: Result): string {
  return timesAsFast(result).toPrecision(2)
}

/** Of "times as fast". */
export function intervalCell({ ratio, better, rounds }: Result): string {
  if (ratio === undefined || !saysSomething(rounds.length)) return ''
  const [low, high] = better === 'higher' ? [ratio.low, ratio.high] : [1 / ratio.high, 1 / ratio.low]
  return `${low.toPrecision(2)} to ${high.toPrecision(2)}`
}
