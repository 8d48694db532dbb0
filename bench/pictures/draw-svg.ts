/** Draws pictures as SVG with echarts, without a browser. */
import type { EChartsOption } from 'echarts'
import { quantity, sizeText } from '../quantity.ts'
import type { Axis, Picture } from './picture.ts'

const WIDTH = 900
const HEIGHT = 520
const BAR_HEIGHT = 26
const LEGEND_WIDTH = 190
/** Of Okabe and Ito, who see that colours can be told apart by everybody; then darker ones. */
const COLOURS = [
  '#0072b2',
  '#d55e00',
  '#009e73',
  '#cc79a7',
  '#e69f00',
  '#56b4e9',
  '#000000',
  '#7f3c8d',
  '#8a8a00',
  '#a04000',
  '#1b5e20',
  '#607d8b',
  '#b71c1c',
]
const SYMBOLS = ['circle', 'rect', 'triangle', 'diamond', 'emptyCircle', 'emptyRect', 'emptyTriangle']

export async function drawSvg(picture: Picture): Promise<string> {
  const { init } = await import('echarts')
  const height = heightOf(picture)
  const chart = init(null, null, { renderer: 'svg', ssr: true, width: WIDTH, height })
  try {
    chart.setOption(picture.kind === 'bars' ? barOption(picture) : curveOption(picture))
    return chart.renderToSVGString()
  } finally {
    chart.dispose()
  }
}

function heightOf({ kind, x, series }: Picture): number {
  if (kind === 'curves') return HEIGHT
  return 130 + (x.names?.length ?? 0) * Math.max(BAR_HEIGHT, 16 * series.length + 10)
}

function common({ title, series }: Picture): EChartsOption {
  return {
    animation: false,
    backgroundColor: '#ffffff',
    color: COLOURS,
    title: { text: title, left: 'center', top: 10, textStyle: { fontSize: 16 } },
    ...(series.length > 1 && {
      legend: { orient: 'vertical', right: 10, top: 50, itemWidth: 28, data: series.map(({ name }) => name) },
    }),
  }
}

function curveOption(picture: Picture): EChartsOption {
  const { x, y, series } = picture
  return {
    ...common(picture),
    grid: { left: 90, right: series.length > 1 ? LEGEND_WIDTH : 30, top: 60, bottom: 60 },
    xAxis: {
      ...axisOption(
        x,
        series.flatMap(({ points }) => points.map(([px]) => px)),
      ),
      nameLocation: 'middle',
      nameGap: 34,
    } as NonNullable<EChartsOption['xAxis']>,
    yAxis: { ...axisOption(y, []), nameLocation: 'middle', nameGap: 68 } as NonNullable<
      EChartsOption['yAxis']
    >,
    series: series.map(({ name, points }, index) => ({
      type: 'line',
      name,
      data: points.map(([px, py]) => [px, py]),
      symbol: SYMBOLS[index % SYMBOLS.length] as string,
      symbolSize: 7,
      lineStyle: { width: 2, type: index < COLOURS.length / 2 ? 'solid' : 'dashed' },
    })),
  }
}

/** Lying, so that the names can be read. */
function barOption(picture: Picture): EChartsOption {
  const { x, y, series } = picture
  const values = series.flatMap(({ points }) => points.map(([, py]) => py))
  const nameLength = Math.max(...(x.names ?? []).map(name => name.length))
  return {
    ...common(picture),
    grid: {
      left: 30 + 7 * nameLength,
      right: series.length > 1 ? LEGEND_WIDTH + 40 : 90,
      top: 60,
      bottom: 55,
    },
    xAxis: { ...axisOption(y, values, true), nameLocation: 'middle', nameGap: 32 } as NonNullable<
      EChartsOption['xAxis']
    >,
    yAxis: { type: 'category', data: [...(x.names ?? [])], inverse: true, axisTick: { show: false } },
    series: series.map(({ name, points }) => ({
      type: 'bar',
      name,
      data: (x.names ?? []).map((_, index) => points.find(([px]) => px === index)?.[1] ?? '-'),
      label: {
        show: true,
        position: 'right',
        formatter: ({ value }: { value: unknown }) => valueText(Number(value), y),
      },
    })),
  } as EChartsOption
}

function axisOption(axis: Axis, values: readonly number[], isOfBars = false): object {
  const name = axis.title
  const grid = { splitLine: { show: true, lineStyle: { color: '#dddddd' } } }
  if (axis.scale === 'names') return { type: 'category', name, data: [...(axis.names ?? [])], ...grid }
  // Sizes go from one power of two to another; a grid of powers of four has all of them, or every second.
  const sizes = axis.unit === 'size' && {
    logBase: 4,
    interval: 1,
    min: Math.min(...values),
    max: Math.max(...values),
  }
  // Bars on a logarithmic axis would begin at 1, wherever that is.
  const least = 10 ** Math.floor(Math.log10(Math.min(...values)))
  const start = isOfBars && axis.scale === 'log' && { min: least, startValue: least }
  return {
    type: axis.scale === 'log' ? 'log' : 'value',
    ...sizes,
    ...start,
    name,
    axisLabel: { formatter: (value: number) => valueText(value, axis), hideOverlap: true },
    ...grid,
  }
}

/** With its unit. */
function valueText(value: number, { unit }: Axis): string {
  if (Number.isNaN(value)) return ''
  if (unit === 'size') return Number.isInteger(value) ? sizeText(value) : ''
  if (value === 0) return '0'
  if (unit === 'x') return value.toPrecision(2)
  if (unit === '') return String(value)
  if (unit === 'us' && value >= 1e6) return trimmed(quantity(value / 1e6, 's'))
  if (unit === 'us' && value >= 1e3) return trimmed(quantity(value / 1e3, 'ms'))
  return trimmed(quantity(value, unit))
}

/** A tick of 0.1 needs no three digits. */
function trimmed(text: string): string {
  return text.replace(/(\.\d*?)0+(?=\D|$)/, '$1').replace(/\.(?=\D|$)/, '')
}
