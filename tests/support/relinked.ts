/** How the tests start programs: the same file plain or relinked. */
import type { ForkOptions } from 'node:child_process'

export const REGISTER = new URL('../../fastsockets/register.js', import.meta.url)

/** A compiled program in tests/fastsockets/programs. */
export function program(name: string): URL {
  return new URL(`../fastsockets/programs/${name}.js`, import.meta.url)
}

export function relinked(options: ForkOptions = {}): ForkOptions {
  return { ...options, execArgv: [...(options.execArgv ?? []), '--import', REGISTER.href] }
}
