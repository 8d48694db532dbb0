/**
 * Text of strangers for people: names, paths and messages that another process or a file has chosen. A terminal obeys control
 * characters; direction marks and invisible characters make one text look like another. All of the project shows text by this.
 */

/** Control (C0, DEL, C1), format (directions, zero width, tags), lone surrogate, line and paragraph separator. */
const UNFIT = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu

/** Each unfit character becomes `\uXXXX`, as in JSON. */
export function shownText(text: string): string {
  return text.replace(UNFIT, escaped)
}

/** JSON with the same escapes, which mean the same to its reader. */
export function shownJson(value: unknown, indent?: number): string {
  return JSON.stringify(value, undefined, indent).split('\n').map(shownText).join('\n')
}

/** Several lines of our own, of which each may name something of a stranger's. */
export function shownLines(lines: readonly string[]): string {
  return lines.map(shownText).join('\n')
}

function escaped(character: string): string {
  return character
    .split('')
    .map(unit => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('')
}
