/** Relinking through the environment: NODE_OPTIONS reaches every Node program that the command starts, at any depth. */
import { fileURLToPath } from 'node:url'

const REGISTER_FLAG = preloadFlag(new URL('../register.cjs', import.meta.url))

/** One option or the value of one. Quotes may enclose blanks; within quotes a backslash escapes the next character. */
const WORD = /(?:"(?:\\.|[^"\\])*"|[^\s"])+/gs
const PRELOAD = /^(--import|--require|-r)(?:=(.*))?$/s
/** Matches the package's name, and a path or URL of its file. */
const REGISTER = /(?:^|\/)fastsockets\/register(?:\.c?js)?$/

/**
 * Preloads a CommonJS module, by `--require` where possible: while Node imports a preload the event loop runs, and a
 * worker of a cluster loses the messages that arrive meanwhile. A path that NODE_OPTIONS would have to quote is given
 * as a file URL, in which spaces and quotes are escaped.
 */
export function preloadFlag(module: URL): string {
  const path = fileURLToPath(module)
  return !/[\s"\\]/.test(path) ? `--require=${path}` : `--import=${module.href}`
}

/** NODE_OPTIONS with `fastsockets/register` in it, once. */
export function relinkedNodeOptions(existing = ''): string {
  return addFlag(existing, REGISTER_FLAG)
}

/**
 * NODE_OPTIONS without any option that preloads `fastsockets/register`, of this package or another copy, in any form.
 */
export function plainNodeOptions(existing = ''): string {
  const words = existing.match(WORD) ?? []
  const kept: string[] = []
  for (let i = 0; i < words.length; i++) {
    const word = words[i] as string
    const [, option, value] = PRELOAD.exec(unquoted(word)) ?? []
    const module = value ?? unquoted(words[i + 1] ?? '')
    if (option === undefined || !REGISTER.test(module)) kept.push(word)
    else if (value === undefined) i++
  }
  return kept.join(' ')
}

function unquoted(word: string): string {
  return word.replace(/\\(.)|"/gs, '$1')
}

export function addFlag(nodeOptions: string, flag: string): string {
  if (nodeOptions.split(' ').includes(flag)) return nodeOptions
  return nodeOptions.trim() === '' ? flag : `${nodeOptions} ${flag}`
}
