const UNITS = ['', 'k', 'M', 'G', 'T', 'P']

/** Three digits, `space`, and a unit of 1000. */
export function amount(value: number, space = ' '): string {
  let unit = 0
  let rest = value
  // Three digits of 999.5 are 1000.
  while (rest >= (unit === 0 ? 1000 : 999.5) && unit < UNITS.length - 1) {
    rest /= 1000
    unit++
  }
  return `${unit === 0 ? Math.round(rest) : rest.toPrecision(3)}${space}${UNITS[unit]}`.trimEnd()
}

/** The same without the space, for columns. */
export function narrowAmount(value: number): string {
  return amount(value, '')
}

/** The last part of a path; of a command line the program and its first argument. */
export function shortName(program: string): string {
  const [command = '', first = ''] = program.split(' ')
  const name = command.slice(command.lastIndexOf('/') + 1)
  const argument = first.slice(first.lastIndexOf('/') + 1)
  return argument === '' ? name || '?' : `${name} ${argument}`
}
