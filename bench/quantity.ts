/** Figures for people. */
const PREFIXES = [
  [1e9, 'G'],
  [1e6, 'M'],
  [1e3, 'k'],
] as const
const DIGITS = 3

/** Three digits, with a prefix for units that take one. Microseconds and seconds do not. */
export function quantity(value: number, unit: string): string {
  if (!/^(B|1)(\/s)?$/.test(unit)) return `${digits(value)} ${unit}`
  const [scale, prefix] = PREFIXES.find(([least]) => value >= least) ?? [1, '']
  if (unit === '1/s') return `${digits(value / scale)}${prefix === '' ? '' : ` ${prefix}`}/s`
  return `${digits(value / scale)} ${prefix}${unit}`
}

export function digits(value: number): string {
  if (value >= 100) return value.toFixed(0)
  return value.toPrecision(DIGITS)
}

const KIBI = 1024
const MEBI = KIBI * KIBI

/** A round number of bytes, such as a message size. */
export function sizeText(bytes: number): string {
  if (bytes >= MEBI && bytes % MEBI === 0) return `${bytes / MEBI} MiB`
  if (bytes >= KIBI && bytes % KIBI === 0) return `${bytes / KIBI} KiB`
  return `${bytes} B`
}
