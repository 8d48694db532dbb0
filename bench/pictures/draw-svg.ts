/** Draws pictures as SVG with echarts, without a browser. */
import type { EChartsOption } from 'echarts'
import { quantity, sizeText } from '../quantity.ts'
import { isEmphasized, type Look, lookOf } from './colours.ts'
import type { Axis, Picture, Point, Series } from './picture.ts'

const WIDTH = 900
const HEIGHT = 520
const BAR_HEIGHT = 26
const LEGEND_WIDTH = 225
const GRID_COLOUR = '#dddddd'
const NOTE_COLOUR = '#666666'
const LINE_WIDTH = 2
const EMPHASIZED_WIDTH = 4
const SPREAD_OPACITY = 0.15

/** The part of echarts' API for own shapes that spreads are drawn with. */
interface ShapeApi {
  coord(point: readonly number[]): [x: number, y: number]
  value(dimension: number): number
  size(lengths: readonly number[]): [width: number, height: number]
}

export async function drawSvg(picture: Picture): Promise<string> {
  const { init } = await import('echarts')
  const chart = init(null, null, { renderer: 'svg', ssr: true, width: WIDTH, height: heightOf(picture) })
  try {
    chart.setOption(picture.kind === 'bars' ? barOption(picture) : curveOption(picture))
    return chart.renderToSVGString()
  } finally {
    chart.dispose()
  }
}

function heightOf({ kind, x, series }: Picture): number {
  if (kind === 'curves') return HEIGHT
  return 150 + (x.names?.length ?? 0) * Math.max(BAR_HEIGHT, 16 * series.length + 10)
}

function looksOf({ series }: Picture): Look[] {
  return series.map(({ name }, index) => lookOf(name, index))
}

function common(picture: Picture): EChartsOption {
  const { kind, title, series, spread } = picture
  const looks = looksOf(picture)
  return {
    animation: false,
    backgroundColor: '#ffffff',
    title: [
      { text: title, left: 'center', top: 10, textStyle: { fontSize: 16 } },
      ...(spread === undefined
        ? []
        : [
            {
              text: `${kind === 'bars' ? 'thin lines' : 'shaded'}: ${spread}`,
              left: 10,
              bottom: 4,
              textStyle: { fontSize: 11, fontWeight: 'normal', color: NOTE_COLOUR },
            },
          ]),
    ] as NonNullable<EChartsOption['title']>,
    ...(series.length > 1 && {
      legend: {
        orient: 'vertical',
        left: WIDTH - LEGEND_WIDTH + 15,
        top: 50,
        itemWidth: 28,
        data: looks.map(({ label }) => label),
      },
    }),
  }
}

function curveOption(picture: Picture): EChartsOption {
  const { x, y, series, reference } = picture
  const looks = looksOf(picture)
  const xs = series.flatMap(({ points }) => points.map(point => point.x))
  return {
    ...common(picture),
    grid: { left: 90, right: series.length > 1 ? LEGEND_WIDTH : 30, top: 60, bottom: 70 },
    xAxis: { ...axisOption(x, xs), nameLocation: 'middle', nameGap: 34 } as NonNullable<
      EChartsOption['xAxis']
    >,
    yAxis: { ...axisOption(y, []), nameLocation: 'middle', nameGap: 68 } as NonNullable<
      EChartsOption['yAxis']
    >,
    series: [
      ...series.map((one, index) => bandOption(one, looks[index] as Look)),
      ...series.map(({ name, points }, index) => {
        const { label, colour, symbol } = looks[index] as Look
        const isStrong = isEmphasized(name)
        return {
          type: 'line',
          name: label,
          data: points.map(point => [point.x, point.y]),
          symbol,
          symbolSize: isStrong ? 9 : 7,
          itemStyle: { color: colour },
          lineStyle: { width: isStrong ? EMPHASIZED_WIDTH : LINE_WIDTH, color: colour },
          z: isStrong ? 4 : 3,
          ...(index === 0 && reference !== undefined && { markLine: referenceOption(reference, 'yAxis') }),
        }
      }),
    ],
  } as EChartsOption
}

/** The spread of a curve: one shape from its lowest values to its highest. */
function bandOption({ points }: Series, { colour }: Look): object {
  const known = points.filter(({ low, high }) => low !== undefined && high !== undefined)
  return {
    type: 'custom',
    silent: true,
    z: 1,
    data: known.length < 2 ? [] : [[known[0]?.x ?? 0, known[0]?.low ?? 0]],
    renderItem: (_: unknown, api: ShapeApi) => ({
      type: 'polygon',
      shape: {
        points: [
          ...known.map(({ x, high = 0 }) => api.coord([x, high])),
          ...known.toReversed().map(({ x, low = 0 }) => api.coord([x, low])),
        ],
      },
      style: { fill: colour, opacity: SPREAD_OPACITY },
    }),
  }
}

/** Horizontal bars, so that the names can be read. */
function barOption(picture: Picture): EChartsOption {
  const { x, y, series, reference } = picture
  const looks = looksOf(picture)
  const points = series.flatMap(one => one.points)
  const names = (x.names ?? []).map(name => lookOf(name).label)
  const nameLength = Math.max(...names.map(name => name.length))
  const highest = points.map(point => point.high ?? point.y)
  return {
    ...common(picture),
    grid: {
      left: 30 + 7 * nameLength,
      right: series.length > 1 ? LEGEND_WIDTH + 40 : 100,
      top: 60,
      bottom: 70,
    },
    xAxis: {
      ...axisOption(y, [...points.map(point => point.y), ...highest], true),
      nameLocation: 'middle',
      nameGap: 32,
    } as NonNullable<EChartsOption['xAxis']>,
    yAxis: { type: 'category', data: names, inverse: true, axisTick: { show: false } },
    series: series.flatMap((one, index) => [
      {
        type: 'bar',
        name: looks[index]?.label,
        itemStyle: { color: looks[index]?.colour },
        data: names.map((_, place) => barItem(one, place)),
        ...(index === 0 && reference !== undefined && { markLine: referenceOption(reference, 'xAxis') }),
      },
      whiskerOption(one, index, series.length, y),
    ]),
  } as EChartsOption
}

function barItem({ points }: Series, place: number): object | '-' {
  const point = points.find(({ x }) => x === place)
  if (point === undefined) return '-'
  return { value: point.y, ...(point.of !== undefined && { itemStyle: { color: lookOf(point.of).colour } }) }
}

/** The spread of bars, a thin line from the least to the greatest, and the value behind it. */
function whiskerOption({ points }: Series, index: number, count: number, axis: Axis): object {
  return {
    type: 'custom',
    silent: true,
    z: 5,
    encode: { x: [1, 2], y: 0 },
    data: points.map(({ x, y, low = y, high = y }: Point) => [x, low, high, y]),
    renderItem: (_: unknown, api: ShapeApi) => {
      const place = api.value(0)
      const [left, middle] = api.coord([api.value(1), place])
      const [right] = api.coord([api.value(2), place])
      // echarts leaves a fifth of a place free at each side, and 30 % of a bar between two of one place.
      const [, height] = api.size([0, 1])
      const step = (0.8 * height) / (count + 0.3 * (count - 1))
      const y = middle + 1.3 * step * (index - (count - 1) / 2)
      return {
        type: 'group',
        children: [
          ...(right - left < 1
            ? []
            : [line(left, y, right, y), line(left, y - 4, left, y + 4), line(right, y - 4, right, y + 4)]),
          {
            type: 'text',
            x: Math.max(right, api.coord([api.value(3), place])[0]) + 6,
            y,
            style: {
              text: valueText(api.value(3), axis),
              verticalAlign: 'middle',
              fontSize: 12,
              fill: '#333333',
            },
          },
        ],
      }
    },
  }
}

function line(x1: number, y1: number, x2: number, y2: number): object {
  return { type: 'line', shape: { x1, y1, x2, y2 }, style: { stroke: '#000000', lineWidth: 1, opacity: 0.6 } }
}

function referenceOption(
  { value, name }: NonNullable<Picture['reference']>,
  axis: 'xAxis' | 'yAxis',
): object {
  return {
    silent: true,
    symbol: 'none',
    data: [{ [axis]: value, name }],
    lineStyle: { color: '#4d4d4d', type: 'dashed', width: LINE_WIDTH },
    label: { formatter: '{b}', position: axis === 'xAxis' ? 'start' : 'insideStartTop', color: '#4d4d4d' },
  }
}

function axisOption(axis: Axis, values: readonly number[], isOfBars = false): object {
  const isLog = axis.scale === 'log'
  const name = isLog ? `${axis.title} (logarithmic axis)` : axis.title
  const grid = { splitLine: { show: true, lineStyle: { color: GRID_COLOUR } } }
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
  const start = isOfBars && isLog && { min: least, startValue: least }
  return {
    type: isLog ? 'log' : 'value',
    ...(isLog && axis.unit !== 'size' && { minorTick: { show: true, splitNumber: 9 } }),
    ...sizes,
    ...start,
    name,
    axisLabel: { formatter: (value: number) => valueText(value, axis), hideOverlap: true },
    ...grid,
  }
}

/** A value with its unit. */
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
