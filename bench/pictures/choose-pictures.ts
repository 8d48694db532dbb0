/**
 * Which pictures a report gives: a curve where something is swept, bars where it is not, and percentiles of
 * latencies.
 */
import { parametersText } from '../report-table.ts'
import type { Percentiles, Report, Result } from '../result.ts'
import { SMALL } from '../sizes.ts'
import { ablationPictures } from './ablation-pictures.ts'
import { appPictures } from './app-pictures.ts'
import { type Axis, CURVES_MAX, type Picture } from './picture.ts'
import { ROUNDS_SPREAD, spreadOf } from './spread.ts'
import { axisTitle, titleOf, withDirection } from './titles.ts'

/** Bars of which the longest is so much longer than the shortest are drawn on a logarithmic axis. */
const SPREAD_MAX = 30
/** Fewer points make no curve. */
const CURVE_POINTS_MIN = 3
/**
 * Where more contestants were measured than a picture may have curves, these share a picture: the ways between two
 * programs that a user can choose, and the layers of this package. Tables have those that are in neither.
 */
const GROUPS: readonly {
  readonly name: string
  readonly of: string
  readonly contestants: readonly string[]
}[] = [
  {
    name: '',
    of: '',
    contestants: ['net-tcp', 'net-unix', 'zeromq-ipc', 'child-ipc', 'message-port', 'net-relinked'],
  },
  {
    name: '-layers',
    of: ': the layers of Fast Sockets',
    contestants: ['c-limit', 'am-polling', 'am-events', 'raw-polling', 'raw', 'net-relinked'],
  },
]
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
  const pictures = swept === undefined ? bars(results) : split(results, own => curves(own, swept))
  return [...pictures, ...split(percentileResults(results), percentileCurves)]
}

/** As many pictures as it takes so that none has too many curves. */
function split(results: readonly Result[], draw: (results: readonly Result[]) => Picture): Picture[] {
  if (results.length === 0) return []
  if (byContestant(results).length <= CURVES_MAX) return [draw(results)]
  return GROUPS.flatMap(({ name, of, contestants }) => {
    const own = results.filter(({ contestant }) => contestants.includes(contestant))
    if (own.length === 0) return []
    const picture = draw(own)
    return [{ ...picture, name: `${picture.name}${name}`, title: picture.title.replace(/(?= \()/, of) }]
  })
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

function curves(results: readonly Result[], swept: string): Picture {
  const isOverTime = swept === 'second'
  return {
    name: nameOf(results),
    title: titleOf(results[0] as Result),
    kind: 'curves',
    x: {
      title: axisTitle(swept),
      scale: isOverTime ? 'linear' : 'log',
      unit: swept === 'size' ? 'size' : '',
    },
    y: valueAxis(results, isOverTime ? 'linear' : 'log'),
    spread: ROUNDS_SPREAD,
    series: byContestant(results).map(([contestant, own]) => ({
      name: contestant,
      points: own
        .map(result => ({ x: Number(result.parameters[swept]), y: result.median, ...spreadOf(result) }))
        .toSorted((a, b) => a.x - b.x),
    })),
  }
}

/** One picture for each set of parameters; a bar for each contestant. */
function bars(results: readonly Result[]): Picture[] {
  const sets = [...new Set(results.map(({ parameters }) => parametersText(parameters)))]
  return sets.map((of, index) => {
    const own = results.filter(({ parameters }) => parametersText(parameters) === of)
    const values = own.map(({ median }) => median)
    const contestants = own.map(({ contestant }) => contestant)
    const { better } = own[0] as Result
    const title = titleOf(own[0] as Result)
    return {
      name: sets.length === 1 ? nameOf(own) : `${nameOf(own)}-${index + 1}`,
      title:
        sets.length === 1
          ? title
          : title.replace(withDirection('', better), withDirection(`, ${of}`, better)),
      kind: 'bars',
      x: { title: '', scale: 'names', unit: '', names: contestants },
      y: valueAxis(own, Math.max(...values) / Math.min(...values) > SPREAD_MAX ? 'log' : 'linear'),
      spread: ROUNDS_SPREAD,
      series: [
        {
          name: 'median',
          points: own.map((result, x) => ({
            x,
            y: result.median,
            of: result.contestant,
            ...spreadOf(result),
          })),
        },
      ],
    }
  })
}

/** Of the small message where there are several sizes; none where anything else differs. */
function percentileResults(results: readonly Result[]): Result[] {
  const chosen = results.filter(({ latencies, parameters }) => {
    return latencies !== undefined && (parameters.size ?? SMALL) === SMALL
  })
  return new Set(chosen.map(({ parameters }) => parametersText(parameters))).size === 1 ? chosen : []
}

function percentileCurves(results: readonly Result[]): Picture {
  const first = results[0] as Result
  const what = axisTitle(first.metric)
  const title =
    first.parameters.size === undefined ? `Time for a ${what}` : `Time for a ${SMALL}-byte ${what}`
  return {
    name: `${nameOf(results)}-percentiles`,
    title: withDirection(`${title}: median and slowest samples`, 'lower'),
    kind: 'curves',
    x: {
      title: 'percentile of the samples',
      scale: 'names',
      unit: '',
      names: PERCENTILES.map(([name]) => name),
    },
    y: valueAxis(results, 'log'),
    series: byContestant(results).map(([contestant, [own]]) => ({
      name: contestant,
      points: PERCENTILES.map(([, key], x) => ({ x, y: own?.latencies?.[key] ?? 0 })),
    })),
  }
}

function byContestant(results: readonly Result[]): [contestant: string, own: Result[]][] {
  const names = [...new Set(results.map(({ contestant }) => contestant))]
  return names.map(name => [name, results.filter(({ contestant }) => contestant === name)])
}

function valueAxis(results: readonly Result[], scale: Axis['scale']): Axis {
  const { metric = '', unit = '' } = results[0] ?? {}
  return { title: metric.startsWith('tripsOf') ? 'round trips' : axisTitle(metric), scale, unit }
}

function nameOf([first]: readonly Result[]): string {
  return `${first?.suite}-${first?.metric}`
}
