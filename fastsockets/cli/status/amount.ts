const UNITS = ['', 'k', 'M', 'G', 'T', 'P']

/** Three digits and a unit of 1000. */
export function amount(value: number): string {
  let unit = 0
  let rest = value
  // Three digits of 999.5 are 1000.
  while (rest >= (unit === 0 ? 1000 : 999.5) && unit < UNITS.length - 1) {
    rest /= 1000
    unit++
  }
  return `${unit === 0 ? rest : rest.toPrecision(3)}${UNITS[unit]}`
}
