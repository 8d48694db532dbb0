/** What we use of an `HTTPParser`. */
export interface Parser {
  consume(handle: object): void
  unconsume(): void
}

/** Handles that a parser of http reads in native code, each with its parser; empty until the program gets the parser's class by `process.binding`. */
export const parsers = new WeakMap<object, Parser>()
