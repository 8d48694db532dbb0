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
    xAxis: { ...axisOption(x), nameLocation: 'middle', nameGap: 34 } as NonNullable<EChartsOption['xAxis']>,
    yAxis: { ...axisOption(y), nameLocation: 'middle', nameGap: 68 } as NonNullable<EChartsOption['yAxis']>,
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
  const nameLength = Math.max(...(x.names ?? []).map(name => name.length))
  return {
    ...common(picture),
    grid: {
      left: 30 + 7 * nameLength,
      right: series.length > 1 ? LEGEND_WIDTH + 40 : 90,
      top: 60,
      bottom: 55,
    },
    xAxis: { ...axisOption(y), nameLocation: 'middle', nameGap: 32 } as NonNullable<EChartsOption['xAxis']>,
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

function axisOption(axis: Axis): object {
  const name =
    axis.unit === '' || axis.unit === 'size' ? axis.title : `${axis.title} (${unitText(axis.unit)})`
  const grid = { splitLine: { show: true, lineStyle: { color: '#dddddd' } } }
  if (axis.scale === 'names') return { type: 'category', name, data: [...(axis.names ?? [])], ...grid }
  return {
    type: axis.scale === 'log' ? 'log' : 'value',
    ...(axis.unit === 'size' && { logBase: 2 }),
    name,
    axisLabel: { formatter: (value: number) => valueText(value, axis) },
    ...grid,
  }
}

function unitText(unit: string): string {
  if (unit === 'x') return 'ratio'
  if (unit === '1/s') return 'a second'
  return unit
}

function valueText(value: number, { unit }: Axis): string {
  if (Number.isNaN(value)) return ''
  if (unit === 'size') return value < 1 ? '' : sizeText(value)
  if (unit === 'x') return value === 0 ? '0' : value.toPrecision(2)
  if (value === 0) return '0'
  if (unit === '') return String(value)
  // A tick of 0.1 needs no three digits.
  return quantity(value, unit)
    .replace(/(\.\d*?)0+(?=\D|$)/, '$1')
    .replace(/\.(?=\D|$)/, '')
}
