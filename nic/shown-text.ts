/**
 * Escapes text of strangers for people: names, paths and messages that another process or a file has chosen.
 * Terminals execute control characters; direction marks and invisible characters make one text look like another. All
 * parts of the project show such text through this module.
 */

/** Control (C0, DEL, C1), format (directions, zero width, tags), lone surrogate, line and paragraph separator; characters that fonts draw as nothing. */
const UNFIT = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu

/** Each unfit character becomes `\uXXXX`, as in JSON. */
export function shownText(text: string): string {
  return text.replace(UNFIT, escaped)
}

/** JSON with the same escapes: a JSON parser turns them back into the characters. */
export function shownJson(value: unknown, indent?: number): string {
  return JSON.stringify(value, undefined, indent).split('\n').map(shownText).join('\n')
}

/** Escapes each line and joins them. For lines of our own that contain text of strangers. */
export function shownLines(lines: readonly string[]): string {
  return lines.map(shownText).join('\n')
}

function escaped(character: string): string {
  return character
    .split('')
    .map(unit => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('')
}
