/** Characters of one pattern. `policy-schema.ts` refuses longer ones, so that a comparison with any unix path stays a few milliseconds. */
export const PATTERN_LENGTH_MAX = 1024

const SLASH = '/'

/** A step of a pattern matches itself if it is a character, else as these symbols say. */
const ONE = Symbol('any character but a slash')
const WITHIN = Symbol('any number of characters but slashes')
const ACROSS = Symbol('any number of characters')
/** `**` with a slash is two steps: SKIP may leave FOLDERS out, and FOLDERS ends at a slash. */
const SKIP = Symbol('nothing, with or without the next step')
const FOLDERS = Symbol('any number of characters, then a slash')

type Step = string | typeof ONE | typeof WITHIN | typeof ACROSS | typeof SKIP | typeof FOLDERS

/**
 * Matches a path: `*` and `?` stay within one part of the path, `**` crosses parts. A pattern without a slash is
 * compared with the last part only.
 */
export function matchesGlob(path: string, pattern: string): boolean {
  return matchesWhole(pattern.includes(SLASH) ? path : path.slice(path.lastIndexOf(SLASH) + 1), pattern)
}

/**
 * Matches a whole name, in which a slash is an ordinary letter except that only `**` crosses it. Keeps the set of all
 * steps that the name so far may have reached, and never backtracks: the time is at most proportional to the product of
 * both lengths, whatever the pattern (Thompson, "Regular Expression Search Algorithm", 1968). V8's regular expressions
 * backtrack, and can take exponential time.
 */
export function matchesWhole(name: string, pattern: string): boolean {
  const steps = stepsOf(pattern)
  let reached = new Uint8Array(steps.length + 1)
  let next = new Uint8Array(steps.length + 1)
  reached[0] = 1
  passOver(steps, reached)
  for (let i = 0; i < name.length; i++) {
    next.fill(0)
    if (!advance(steps, reached, name[i] as string, next)) return false
    passOver(steps, next)
    const last = reached
    reached = next
    next = last
  }
  return reached[steps.length] === 1
}

/** Marks in `next` the steps that `character` leads to; false if there is none. */
function advance(steps: readonly Step[], reached: Uint8Array, character: string, next: Uint8Array): boolean {
  const isSlash = character === SLASH
  let isAlive = false
  for (const [at, step] of steps.entries()) {
    if (reached[at] === 0) continue
    const stays = step === ACROSS || step === FOLDERS || (step === WITHIN && !isSlash)
    const passes = step === character || (step === ONE && !isSlash) || (step === FOLDERS && isSlash)
    if (stays) next[at] = 1
    if (passes) next[at + 1] = 1
    isAlive ||= stays || passes
  }
  return isAlive
}

/** Marks the steps behind those that match without a character. */
function passOver(steps: readonly Step[], reached: Uint8Array): void {
  for (const [at, step] of steps.entries()) {
    if (reached[at] === 0) continue
    if (step === WITHIN || step === ACROSS || step === SKIP) reached[at + 1] = 1
    if (step === SKIP) reached[at + 2] = 1
  }
}

function stepsOf(pattern: string): Step[] {
  const parts = pattern.match(/\*\*\/|\*\*|./gs) ?? []
  return parts.flatMap((part): Step[] => {
    if (part === '**/') return [SKIP, FOLDERS]
    if (part === '**') return [ACROSS]
    if (part === '*') return [WITHIN]
    return [part === '?' ? ONE : part]
  })
}
