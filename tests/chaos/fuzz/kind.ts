import type { Random } from '../../support/random.ts'

/** Input and report of a kind of attack. */
export interface Attack {
  readonly random: Random
  readonly inputs: number
  /** Runs code of the victim: the longest of these turns counts. */
  victim<T>(act: () => T): T
  /** Counts what the victim made of an input: it shows that the input got there. */
  count(what: string, more?: number): void
  /** The victim did what it must not. */
  wrong(what: string): void
}

/** Something that is attacked. */
export interface Victim {
  attack(attack: Attack): Promise<void> | void
  /** An honest peer uses the same thing, anew. Throws if that does not work. */
  honest(): Promise<void> | void
  close?(): Promise<void> | void
}

/** One kind of hostile input. */
export interface Kind {
  readonly name: string
  /** Input, and the process that receives it. */
  readonly what: string
  /** What must have been counted: each is a place in the victim that inputs have reached. */
  readonly reaches: readonly string[]
  /** Why it cannot be tried here, or undefined. */
  absence?(): string | undefined
  open(): Promise<Victim> | Victim
}
