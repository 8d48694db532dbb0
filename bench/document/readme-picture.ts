/**
 * The picture and the figures of README.md: four measurements of the plain and the relinked program, from a report.
 * Each has an axis of its own, as they have different units.
 */
import type { EChartsOption } from 'echarts'
import { lookOf, PLAIN, RELINKED } from '../pictures/colours.ts'
import { quantity } from '../quantity.ts'
import type { Report, Result } from '../result.ts'
import { timesAsFast } from '../times-as-fast.ts'
import { table } from './markdown.ts'

/** Below docs/. */
export const README_PICTURE = 'pictures/plain-and-relinked.svg'
const FIGURES = /(<!-- figures: [^\n]*-->\n)[\s\S]*?(<!-- \/figures -->)/
const WIDTH = 900
const HEIGHT = 280
const TOP = 102
const BOTTOM = 30
const GAP = 20
const DIGITS = 3

interface Measurement {
  readonly title: string
  /** The figure's name in words. */
  readonly what: string
  readonly suite: string
  readonly metric: string
  readonly parameters: Readonly<Record<string, number | string>>
}

const MEASUREMENTS: readonly Measurement[] = [
  {
    title: 'Echo of 64 bytes',
    what: 'there and back',
    suite: 'pingpong',
    metric: 'roundTrip',
    parameters: { size: 64 },
  },
  {
    title: 'HTTP with keep-alive',
    what: 'requests',
    suite: 'apps',
    metric: 'rate',
    parameters: { app: 'http', part: 'keep-alive' },
  },
  {
    title: 'New connections',
    what: 'made and used',
    suite: 'connect',
    metric: 'rate',
    parameters: {},
  },
  {
    title: 'Stream of 64 KiB writes',
    what: 'one way',
    suite: 'stream',
    metric: 'rate',
    parameters: { size: 65536 },
  },
]

interface Measured {
  readonly title: string
  readonly what: string
  readonly plain: Result
  readonly relinked: Result
}

/** Throws if the report lacks one of the four. */
function measured({ results }: Report): Measured[] {
  return MEASUREMENTS.map(({ title, what, suite, metric, parameters }) => {
    const of = (contestant: string): Result => {
      const found = results.find(
        result =>
          result.suite === suite &&
          result.metric === metric &&
          result.contestant === contestant &&
          Object.entries(parameters).every(([name, value]) => result.parameters[name] === value),
      )
      if (found === undefined) throw new Error(`the report has no ${suite} ${metric} of ${contestant}`)
      return found
    }
    return { title, what, plain: of(PLAIN), relinked: of(RELINKED) }
  })
}

/** True if the report has the four measurements; a run of a few suites lacks some. */
export function hasReadmeFigures(report: Report): boolean {
  try {
    return measured(report).length > 0
  } catch {
    return false
  }
}

export async function readmePicture(report: Report): Promise<string> {
  const { init } = await import('echarts')
  const chart = init(null, null, { renderer: 'svg', ssr: true, width: WIDTH, height: HEIGHT })
  try {
    chart.setOption(option(measured(report)))
    return ownIds(chart.renderToSVGString())
  } finally {
    chart.dispose()
  }
}

/** The library numbers its charts and their styles: the same picture is the same text, whatever was drawn before. */
function ownIds(svg: string): string {
  const styles = [...svg.matchAll(/zr\d+-cls-(\d+)/g)].map(([, number]) => Number(number))
  const first = Math.min(...styles)
  return `${svg
    .replace(/(zr\d+-cls-)(\d+)/g, (_, name: string, number: string) => name + (Number(number) - first))
    .replace(/zr\d+-/g, 'plain-and-relinked-')
    .trim()}\n`
}

/** README.md with the figures of the report between its two marks. */
export function withFigures(readme: string, report: Report): string {
  const rows = measured(report).map(({ title, what, plain, relinked }) => [
    `${title}: ${what} (${plain.better} is better)`,
    valueText(plain),
    valueText(relinked),
    `${timesAsFast(relinked).toPrecision(2)} times as fast`,
  ])
  const figures = table(['measurement', 'plain TCP', 'relinked', ''], rows)
  return readme.replace(FIGURES, (_, begin: string, end: string) => `${begin}\n${figures.trim()}\n\n${end}`)
}

function option(all: readonly Measured[]): EChartsOption {
  const width = (WIDTH - GAP) / all.length
  const left = (i: number): number => GAP + i * width
  return {
    animation: false,
    backgroundColor: '#ffffff',
    title: [
      { text: 'Plain Node over TCP, and the same programs relinked', left: 'center', top: 8 },
      ...all.map(({ title, what, plain }, i) => ({
        text: title,
        subtext: `${what}, ${plain.better} is better`,
        left: left(i) + (width - GAP) / 2,
        top: 38,
        textAlign: 'center' as const,
        itemGap: 3,
        textStyle: { fontSize: 14 },
        subtextStyle: { fontSize: 12, color: '#555555' },
      })),
    ],
    grid: all.map((_, i) => ({ left: left(i), width: width - GAP, top: TOP, bottom: BOTTOM })),
    xAxis: all.map((_, gridIndex) => ({
      gridIndex,
      type: 'category' as const,
      data: [lookOf(PLAIN).label, lookOf(RELINKED).label],
      axisTick: { show: false },
      axisLabel: { fontSize: 12, color: '#333333' },
    })),
    yAxis: all.map((_, gridIndex) => ({ gridIndex, show: false, min: 0 })),
    series: all.map(({ plain, relinked }, i) => ({
      type: 'bar' as const,
      xAxisIndex: i,
      yAxisIndex: i,
      barWidth: '60%',
      data: [plain, relinked].map(result => ({
        value: result.median,
        itemStyle: { color: lookOf(result.contestant).colour },
        label: { show: true, position: 'top' as const, formatter: valueText(result), fontSize: 13 },
      })),
    })),
  }
}

/** Counts are written out: readers of the README do not know our units. */
function valueText({ median, unit }: Result): string {
  if (unit !== '1/s') return quantity(median, unit)
  return `${Number(median.toPrecision(DIGITS)).toLocaleString('en-US')}/s`
}
