/** Tables and words of a page in Markdown. */

/** Columns from `numbersFrom` on are numbers. */
export function table(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  numbersFrom = head.length,
): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  const rule = head.map((_, index) => (index < numbersFrom ? '---' : '--:'))
  return [line(head), line(rule), ...rows.map(line)].join('\n')
}

/** A report may come from anywhere: what it says must not become markup. */
export function text(from: string): string {
  return from.replace(/[\\`*_[\]<>|#!&]/g, '\\$&').replace(/\s+/g, ' ')
}

export function code(from: string): string {
  return `\`${from.replace(/[`|]/g, "'").replace(/\s+/g, ' ')}\``
}
