/** The gain of each technique: bars for techniques switched off, curves for settings, and the crossover of ZCopy. */
import { sizeText } from '../quantity.ts'
import type { Result } from '../result.ts'
import { timesAsFast } from '../times-as-fast.ts'
import type { Picture } from './picture.ts'
import { RATIO_SPREAD, ROUNDS_SPREAD, ratioSpreadOf, spreadOf } from './spread.ts'
import { withDirection } from './titles.ts'

const SWEEP = /^(spin|ring|credits)-(\d+)/
const SWEEPS = [
  { name: 'spin', title: 'longest time to spin', unit: 'us' },
  { name: 'ring', title: 'ring size, KiB', unit: '' },
  { name: 'credits', title: 'credits', unit: '' },
] as const

export function ablationPictures(results: readonly Result[]): Picture[] {
  return [switches(results), crossover(results), ...SWEEPS.flatMap(sweep => swept(results, sweep))].filter(
    picture => picture !== undefined && picture.series.length > 0,
  ) as Picture[]
}

/** As figures 11 and 12 of the EMP paper: a bar for each workload and technique. */
function switches(results: readonly Result[]): Picture {
  const off = results.filter(({ contestant, ratio }) => contestant.startsWith('no-') && ratio !== undefined)
  const names = [...new Set(off.map(workload))]
  return {
    name: 'ablation-switches',
    title: withDirection('One technique switched off: speed against all switched on', 'higher'),
    kind: 'bars',
    x: { title: '', scale: 'names', unit: '', names },
    y: { title: 'times as fast as shipped', scale: 'linear', unit: 'x' },
    reference: { value: 1, name: 'as shipped' },
    spread: RATIO_SPREAD,
    series: [...new Set(off.map(({ contestant }) => contestant))].map(contestant => ({
      name: contestant,
      points: off
        .filter(result => result.contestant === contestant)
        .map(result => ({
          x: names.indexOf(workload(result)),
          y: timesAsFast(result),
          ...ratioSpreadOf(result),
        })),
    })),
  }
}

/** As figure 3 of WSDLite: where the curves of copies and of ZCopy cross, the threshold should be. */
function crossover(results: readonly Result[]): Picture | undefined {
  const rates = results.filter(({ metric, contestant, parameters }) => {
    return metric === 'rate' && /^(zcopy|as-shipped)/.test(contestant) && Number(parameters.size) >= 32 * 1024
  })
  const contestants = [...new Set(rates.map(({ contestant }) => contestant))]
  if (contestants.length < 2) return undefined
  return {
    name: 'ablation-zcopy',
    title: withDirection('Large writes: copied, or fetched from the writer (ZCopy)', 'higher'),
    kind: 'curves',
    x: { title: 'size of a write', scale: 'log', unit: 'size' },
    y: { title: 'rate', scale: 'linear', unit: 'B/s' },
    spread: ROUNDS_SPREAD,
    series: contestants.map(contestant => ({
      name: contestant,
      points: rates
        .filter(result => result.contestant === contestant)
        .map(result => ({ x: Number(result.parameters.size), y: result.median, ...spreadOf(result) })),
    })),
  }
}

function swept(
  results: readonly Result[],
  { name, title, unit }: { readonly name: string; readonly title: string; readonly unit: string },
): Picture[] {
  const own = results.filter(
    ({ contestant, ratio }) => SWEEP.exec(contestant)?.[1] === name && ratio !== undefined,
  )
  const names = [...new Set(own.map(({ contestant }) => Number(SWEEP.exec(contestant)?.[2])))].toSorted(
    (a, b) => a - b,
  )
  if (names.length < 2) return []
  return [
    {
      name: `ablation-${name}`,
      title: withDirection(`Speed by ${title}`, 'higher'),
      kind: 'curves',
      x: {
        title: unit === '' ? title : `${title}, ${unit}`,
        scale: 'names',
        unit: '',
        names: names.map(String),
      },
      y: { title: 'times as fast as shipped', scale: 'linear', unit: 'x' },
      reference: { value: 1, name: 'as shipped' },
      spread: RATIO_SPREAD,
      series: [...new Set(own.map(workload))].map(work => ({
        name: work,
        points: own
          .filter(result => workload(result) === work)
          .map(result => ({
            x: names.indexOf(Number(SWEEP.exec(result.contestant)?.[2])),
            y: timesAsFast(result),
            ...ratioSpreadOf(result),
          }))
          .toSorted((a, b) => a.x - b.x),
      })),
    },
  ]
}

function workload({ metric, parameters }: Result): string {
  return `${metric === 'rate' ? 'stream' : 'round trip'} ${sizeText(Number(parameters.size))}`
}
