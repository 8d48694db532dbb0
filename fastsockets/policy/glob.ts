/** Characters of one pattern. `policy-schema.ts` refuses longer ones, so that one comparison stays a few milliseconds. */
export const PATTERN_LENGTH_MAX = 1024

const SLASH = '/'

/** What one step of a pattern takes: a character itself, or one of these. */
const ONE = Symbol('any character but a slash')
const WITHIN = Symbol('any number of characters but slashes')
const ACROSS = Symbol('any number of characters')
/** A doubled star with a slash is two steps: the first may be left out with the second, which ends at a slash. */
const SKIP = Symbol('nothing, with or without the next step')
const FOLDERS = Symbol('any number of characters, then a slash')

type Step = string | typeof ONE | typeof WITHIN | typeof ACROSS | typeof SKIP | typeof FOLDERS

/**
 * A pattern for paths: `*` and `?` stay within one part of a path, `**` crosses them. A pattern without a slash is held
 * against the last part only.
 */
export function matchesGlob(path: string, pattern: string): boolean {
  return matchesWhole(pattern.includes(SLASH) ? path : path.slice(path.lastIndexOf(SLASH) + 1), pattern)
}

/**
 * For names in which a slash is a letter like any other, but that only `**` crosses it. Keeps the set of all steps that the
 * name so far may have reached, and never goes back: the time is the product of both lengths at most, whatever the pattern
 * (Thompson, "Regular Expression Search Algorithm", 1968). A regular expression of V8 goes back, and may take for ever.
 */
export function matchesWhole(name: string, pattern: string): boolean {
  const steps = stepsOf(pattern)
  let reached = new Uint8Array(steps.length + 1)
  let next = new Uint8Array(steps.length + 1)
  reached[0] = 1
  passOver(steps, reached)
  for (let i = 0; i < name.length; i++) {
    next.fill(0)
    if (!take(steps, reached, name[i] as string, next)) return false
    passOver(steps, next)
    const last = reached
    reached = next
    next = last
  }
  return reached[steps.length] === 1
}

/** Marks in `next` the steps that `character` leads to; false if there is none. */
function take(steps: readonly Step[], reached: Uint8Array, character: string, next: Uint8Array): boolean {
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

/** Marks the steps behind those that need no character. */
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
