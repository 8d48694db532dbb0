/** Which pictures a report gives: a curve where something is swept, bars where it is not, and percentiles of latencies. */
import { parametersText } from '../report-table.ts'
import type { Percentiles, Report, Result } from '../result.ts'
import { SMALL } from '../sizes.ts'
import { ablationPictures } from './ablation-pictures.ts'
import { appPictures } from './app-pictures.ts'
import type { Axis, Picture } from './picture.ts'

/** Bars of which the longest is so much longer than the shortest are drawn on a logarithmic axis. */
const SPREAD_MAX = 30
/** Two points are no curve. */
const CURVE_POINTS_MIN = 3
const PERCENTILES: readonly (readonly [name: string, key: Exclude<keyof Percentiles, 'count'>])[] = [
  ['p50', 'p50'],
  ['p90', 'p90'],
  ['p99', 'p99'],
  ['p99.9', 'p999'],
  ['max', 'max'],
]

export function choosePictures(report: Report): Picture[] {
  const groups = new Map<string, Result[]>()
  for (const result of report.results) {
    if (result.suite === 'ablation' || result.suite === 'apps') continue
    const key = `${result.suite}-${result.metric}`
    groups.set(key, [...(groups.get(key) ?? []), result])
  }
  return [
    ...[...groups.values()].flatMap(picturesOf),
    ...appPictures(report.results.filter(({ suite }) => suite === 'apps')),
    ...ablationPictures(report.results.filter(({ suite }) => suite === 'ablation')),
  ]
}

/** Results of one suite and metric. */
function picturesOf(results: readonly Result[]): Picture[] {
  const swept = sweptParameter(results)
  const picture = swept === undefined ? bars(results) : curves(results, swept)
  const percentiles = percentileCurves(results)
  return percentiles === undefined ? [picture] : [picture, percentiles]
}

/** The parameter that is a number and has values enough for a curve, if there is one. */
export function sweptParameter(results: readonly Result[]): string | undefined {
  const names = new Set(results.flatMap(({ parameters }) => Object.keys(parameters)))
  return [...names].find(name => {
    const values = new Set(results.map(({ parameters }) => parameters[name]))
    return (
      values.size >= CURVE_POINTS_MIN && [...values].every(value => typeof value === 'number' && value > 0)
    )
  })
}

export function curves(results: readonly Result[], swept: string, name = nameOf(results)): Picture {
  return {
    name,
    title: titleOf(results),
    kind: 'curves',
    x: { title: axisTitle(swept), scale: 'log', unit: swept === 'size' ? 'size' : '' },
    y: valueAxis(results, 'log'),
    series: byContestant(results).map(([contestant, own]) => ({
      name: contestant,
      points: own
        .map(({ parameters, median }) => [Number(parameters[swept]), median] as const)
        .toSorted(([a], [b]) => a - b),
    })),
  }
}

/** One for each set of parameters. */
function bars(results: readonly Result[]): Picture {
  const contestants = byContestant(results).map(([contestant]) => contestant)
  const values = results.map(({ median }) => median)
  const spread = Math.max(...values) / Math.min(...values)
  const parameters = [...new Set(results.map(result => parametersText(result.parameters)))]
  return {
    name: nameOf(results),
    title: titleOf(results),
    kind: 'bars',
    x: { title: '', scale: 'names', unit: '', names: contestants },
    y: valueAxis(results, spread > SPREAD_MAX ? 'log' : 'linear'),
    series: parameters.map(of => ({
      name: of === '' ? 'median' : of,
      points: results
        .filter(result => parametersText(result.parameters) === of)
        .map(({ contestant, median }) => [contestants.indexOf(contestant), median] as const),
    })),
  }
}

/** Of the small message where there are several sizes; no picture where anything else differs. */
function percentileCurves(results: readonly Result[]): Picture | undefined {
  const chosen = results.filter(({ latencies, parameters }) => {
    return latencies !== undefined && (parameters.size ?? SMALL) === SMALL
  })
  const isAlike = new Set(chosen.map(({ parameters }) => parametersText(parameters))).size === 1
  if (!isAlike) return undefined
  const of = parametersText(chosen[0]?.parameters ?? {})
  return {
    name: `${nameOf(results)}-percentiles`,
    title: `${titleOf(results)}: percentiles${of === '' ? '' : ` at ${of}`}`,
    kind: 'curves',
    x: { title: 'share of the samples', scale: 'names', unit: '', names: PERCENTILES.map(([name]) => name) },
    y: valueAxis(chosen, 'log'),
    series: byContestant(chosen).map(([contestant, [first]]) => ({
      name: contestant,
      points: PERCENTILES.map(([, key], index) => [index, first?.latencies?.[key] ?? 0] as const),
    })),
  }
}

export function byContestant(results: readonly Result[]): [contestant: string, own: Result[]][] {
  const names = [...new Set(results.map(({ contestant }) => contestant))]
  return names.map(name => [name, results.filter(({ contestant }) => contestant === name)])
}

export function valueAxis(results: readonly Result[], scale: Axis['scale']): Axis {
  const { metric = '', unit = '' } = results[0] ?? {}
  return { title: axisTitle(metric), scale, unit }
}

function nameOf([first]: readonly Result[]): string {
  return `${first?.suite}-${first?.metric}`
}

function titleOf([first]: readonly Result[]): string {
  return `${first?.suite}: ${axisTitle(first?.metric ?? '')}`
}

/** `bytesPerPeer` is for programs. */
export function axisTitle(name: string): string {
  if (name === 'size') return 'message size'
  return name.replace(/[A-Z]/g, letter => ` ${letter.toLowerCase()}`)
}
