/** The last changes, in order: events for watchers, and how far back a watch may begin. */
import type { StoredChange } from './stored.ts'

export const HISTORY_DEFAULT = 10_000

/** Characters of all kept changes: ten thousand of the longest records would be too many. */
export const HISTORY_LENGTH_MAX = 32 * 1024 * 1024

const CURSOR = /^([0-9a-f]{12})-(\d{1,15})(?:\.(\d{1,9}))?$/

/** A point in a history: every later change is still to come. */
export interface Cursor {
  /** Names the history. Revisions of different epochs are unrelated. */
  readonly epoch: string
  readonly revision: number
  /** 0: after the whole revision. Else after its `part`th change. */
  readonly part: number
}

export function formatCursor({ epoch, revision, part }: Cursor): string {
  return part === 0 ? `${epoch}-${revision}` : `${epoch}-${revision}.${part}`
}

export function parseCursor(text: string): Cursor | undefined {
  const [, epoch, revision, part] = CURSOR.exec(text) ?? []
  return epoch === undefined ? undefined : { epoch, revision: Number(revision), part: Number(part ?? 0) }
}

export interface LogListener {
  /** The log has grown, or its revision has risen. */
  handleGrowth(): void
  /** History was lost: every position is invalid. */
  handleReset(): void
}

export class ChangeLog {
  readonly #capacity: number
  #slots: (StoredChange | undefined)[] = []
  #length = 0
  /** Changes are numbered; the log holds `first` to `end - 1`, each at its number modulo the capacity. */
  #first = 0
  #end = 0
  #epoch = ''
  #revision = 0
  /** The log has every change after this revision. */
  #oldestRevision = 0
  #listener: LogListener | undefined

  constructor(capacity = HISTORY_DEFAULT) {
    this.#capacity = capacity
  }

  get epoch(): string {
    return this.#epoch
  }

  get revision(): number {
    return this.#revision
  }

  get capacity(): number {
    return this.#capacity
  }

  get first(): number {
    return this.#first
  }

  get end(): number {
    return this.#end
  }

  get oldest(): string {
    return formatCursor({ epoch: this.#epoch, revision: this.#oldestRevision, part: 0 })
  }

  get oldestRevision(): number {
    return this.#oldestRevision
  }

  get head(): string {
    return formatCursor({ epoch: this.#epoch, revision: this.#revision, part: 0 })
  }

  setListener(listener: LogListener | undefined): void {
    this.#listener = listener
  }

  /** Begins a history; `changes` are its known end and lead up to `revision`. */
  reset(
    epoch: string,
    revision: number,
    oldestRevision: number,
    changes: readonly StoredChange[] = [],
  ): void {
    this.#epoch = epoch
    this.#revision = revision
    this.#oldestRevision = oldestRevision
    this.#slots = []
    this.#length = 0
    this.#first = this.#end
    for (const change of changes) this.#add(change)
    this.#listener?.handleReset()
  }

  /** All changes up to `revision`, which is later than every one before; empty if no name has changed. */
  append(revision: number, changes: readonly StoredChange[]): void {
    for (const change of changes) this.#add(change)
    this.#revision = revision
    this.#listener?.handleGrowth()
  }

  at(index: number): StoredChange {
    return this.#slots[index % this.#capacity] as StoredChange
  }

  /**
   * Where a watch continues after `cursor`; undefined if later changes are missing, or the cursor is of another history.
   */
  indexAfter({ epoch, revision, part }: Cursor): number | undefined {
    if (epoch !== this.#epoch || revision > this.#revision) return undefined
    // Within a revision, parts count up and the last is 0: as numbers that are compared, it is the highest.
    const rank = (p: number) => (p === 0 ? Number.POSITIVE_INFINITY : p)
    const isKnown = revision >= this.#oldestRevision && !(revision === this.#oldestRevision && part !== 0)
    if (!isKnown) return undefined
    let low = this.#first
    let high = this.#end
    while (low < high) {
      const middle = Math.floor((low + high) / 2)
      const change = this.at(middle)
      const isAfter =
        change.revision > revision || (change.revision === revision && rank(change.part) > rank(part))
      if (isAfter) high = middle
      else low = middle + 1
    }
    return low
  }

  #add(change: StoredChange): void {
    const length = lengthOf(change)
    while (
      this.#end - this.#first === this.#capacity ||
      (this.#length + length > HISTORY_LENGTH_MAX && this.#end > this.#first)
    ) {
      this.#dropFirst()
    }
    this.#length += length
    this.#slots[this.#end % this.#capacity] = change
    this.#end += 1
  }

  #dropFirst(): void {
    const change = this.at(this.#first)
    this.#slots[this.#first % this.#capacity] = undefined
    this.#length -= lengthOf(change)
    this.#oldestRevision = change.revision
    this.#first += 1
  }
}

function lengthOf({ name, entry }: StoredChange): number {
  return name.length + (entry?.record.length ?? 0)
}
