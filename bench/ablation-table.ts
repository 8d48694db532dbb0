/**
 * The suite `ablation` as one table, as figures 11 and 12 of the EMP paper and figure 3 of WSDLite: techniques and their
 * settings down, workloads across.
 */
import { AS_SHIPPED, VARIANTS } from './ablation-variants.ts'
import { saysSomething } from './interval.ts'
import { quantity, sizeText } from './quantity.ts'
import type { Result } from './result.ts'
import { timesAsFast } from './times-as-fast.ts'

export const ABLATION_SUITE = 'ablation'

/** What the cells are, for above the table. */
export const ABLATION_MEANING =
  'Times as fast as what ships, which is 1: below, the technique at that setting costs, above, it gains. In brackets where ' +
  'the rounds do not say which: their interval has 1 in it, or they are fewer than five. The rows of what ships have its own figures.'

export interface AblationTable {
  readonly columns: readonly AblationColumn[]
  readonly rows: readonly AblationRow[]
}

export interface AblationColumn {
  /** `round trip` or `stream`. */
  readonly what: string
  readonly size: string
}

/** One cell for each column; empty where that was not measured. */
export interface AblationRow {
  readonly technique: string
  readonly setting: string
  readonly cells: readonly string[]
}

/** Undefined if the report has nothing of the suite. */
export function ablationTable(all: readonly Result[]): AblationTable | undefined {
  const results = all.filter(({ suite }) => suite === ABLATION_SUITE)
  if (results.length === 0) return undefined
  const columns = columnsOf(results)
  const rows = new Map<string, readonly Result[]>()
  for (const result of results) {
    const key = JSON.stringify([result.contestant, result.parameters.over])
    rows.set(key, [...(rows.get(key) ?? []), result])
  }
  return {
    columns: columns.map(({ metric, size }) => ({
      what: metric === 'rate' ? 'stream' : 'round trip',
      size: Number.isNaN(size) ? '' : sizeText(size),
    })),
    rows: groupByTechnique([...rows.values()].map(own => rowOf(own, columns))),
  }
}

interface Measured {
  readonly metric: string
  readonly size: number
}

/** Round trips before streams, as they come in the report, and small before large. */
function columnsOf(results: readonly Result[]): Measured[] {
  const metrics = [...new Set(results.map(({ metric }) => metric))]
  return metrics.flatMap(metric => {
    const own = results.filter(result => result.metric === metric)
    const sizes = [...new Set(own.map(({ parameters }) => Number(parameters.size)))]
    return sizes.toSorted((a, b) => a - b).map(size => ({ metric, size }))
  })
}

function rowOf(own: readonly Result[], columns: readonly Measured[]): AblationRow {
  const { contestant = '', parameters = {} } = own[0] ?? {}
  const variant =
    VARIANTS.find(({ name, over }) => name === contestant && over === parameters.over) ??
    VARIANTS.find(({ name }) => name === contestant)
  return {
    // A report of another version may know steps that this one does not.
    technique: variant?.technique ?? contestant,
    setting: variant?.setting ?? '',
    cells: columns.map(({ metric, size }) => {
      const found = own.find(result => result.metric === metric && Object.is(sizeOf(result), size))
      return found === undefined ? '' : cellOf(found)
    }),
  }
}

function sizeOf({ parameters }: Result): number {
  return Number(parameters.size)
}

function cellOf(result: Result): string {
  const { ratio, contestant, median, unit, rounds } = result
  if (contestant === AS_SHIPPED) return quantity(median, unit)
  if (ratio === undefined) return ''
  const text = timesAsFast(result).toPrecision(3)
  const saysNothing = !saysSomething(rounds.length) || (ratio.low <= 1 && ratio.high >= 1)
  return saysNothing ? `(${text})` : text
}

/** Those of one technique beside each other, wherever they were measured. */
function groupByTechnique(rows: readonly AblationRow[]): AblationRow[] {
  const techniques = [...new Set(rows.map(({ technique }) => technique))]
  return techniques.flatMap(name => rows.filter(({ technique }) => technique === name))
}
