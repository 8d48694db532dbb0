/** The names that a watcher watches. */
export class WatchFilter {
  readonly prefixes: readonly string[]
  readonly #names: ReadonlySet<string>

  /** Without prefixes and names it matches every name. */
  constructor(prefixes: readonly string[], names: readonly string[]) {
    this.prefixes = prefixes.length === 0 && names.length === 0 ? [''] : prefixes
    this.#names = new Set(names)
  }

  get names(): Iterable<string> {
    return this.#names
  }

  matches(name: string): boolean {
    if (this.#names.has(name)) return true
    for (const prefix of this.prefixes) if (name.startsWith(prefix)) return true
    return false
  }
}
