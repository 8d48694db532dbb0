/** What we use of an `HTTPParser`. */
export interface Parser {
  consume(handle: object): void
  unconsume(): void
}

/** Handles that a parser of http reads in native code, and the parser. */
export const parsers = new WeakMap<object, Parser>()
