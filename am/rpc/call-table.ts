/**
 * Calls under way by number. The low bits of a number are the call's place in the table, which one call has at a time; the others
 * tell the call from earlier ones in that place.
 */
import { CALLS_MAX } from './rpc-layout.ts'

const PLACE_MASK = CALLS_MAX - 1
/** Numbers are positive int32. */
const GENERATION_MAX = 0x7fffffff / CALLS_MAX - 1

export class CallTable<Call> {
  private readonly ids: number[] = []
  private readonly calls: (Call | undefined)[] = []
  /** Places that calls of our own have left. */
  private readonly free: number[] = []
  private generation = 0

  /** The number of a new call of our own; 0 if there is no place. A table has either own calls or the peer's. */
  open(call: Call): number {
    const place = this.free.pop() ?? this.calls.length
    if (place === CALLS_MAX) return 0
    this.generation = this.generation >= GENERATION_MAX ? 1 : this.generation + 1
    const id = this.generation * CALLS_MAX + place
    this.ids[place] = id
    this.calls[place] = call
    return id
  }

  /** Whether a call of the peer may have this number. */
  isFree(id: number): boolean {
    return id > 0 && this.calls[id & PLACE_MASK] === undefined
  }

  /** Enters a call of the peer under a number that is free. */
  accept(id: number, call: Call): void {
    const place = id & PLACE_MASK
    while (this.calls.length <= place) {
      this.calls.push(undefined)
      this.ids.push(0)
    }
    this.ids[place] = id
    this.calls[place] = call
  }

  /** Undefined if the call is over. */
  get(id: number): Call | undefined {
    const place = id & PLACE_MASK
    return this.ids[place] === id ? this.calls[place] : undefined
  }

  /** False if the call was over already. `isOwn`: its place is for the next call of our own. */
  delete(id: number, isOwn: boolean): boolean {
    const place = id & PLACE_MASK
    if (this.ids[place] !== id || this.calls[place] === undefined) return false
    this.calls[place] = undefined
    if (isOwn) this.free.push(place)
    return true
  }

  /** Removes all calls, and returns them. */
  clear(): Call[] {
    this.ids.length = 0
    this.free.length = 0
    return this.calls.splice(0).filter(call => call !== undefined) as Call[]
  }
}
