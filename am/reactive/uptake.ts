/**
 * Detects when a subscriber has finished with a message. Operators that project a value subscribe to an inner
 * observable with an inner subscriber, which they add to their downstream subscriber. At that moment the operator
 * takes the message up; when the inner subscriber ends, the message is finished.
 *
 * While an inner subscriber runs, a message that was emitted without being taken up waits inside the operator,
 * which takes up waiting messages in order. When none runs, the message is finished as soon as the emission
 * returns. Streams that are merged before the operator share its downstream subscriber, and so its queue. An
 * operator that ends its subscription in the middle of a message, and then begins the next one, also adds a
 * subscriber: it takes nothing up.
 */
import { queueMicrotask } from '../../nic/real-time.ts'

/** Called once. `isHandled` is false if the message was dropped before a subscriber saw it. */
export type Finish = (isHandled: boolean) => void

/** The part of an RxJS 7 subscriber that is used here. */
export interface Downstream {
  readonly closed: boolean
  add(teardown: unknown): void
}

const uptakes = new WeakMap<Downstream, Uptake>()

interface Emission {
  readonly source: { readonly closed: boolean }
  readonly by: readonly Uptake[]
  readonly finish: Finish
}

/** The message being emitted at this moment, while no operator has taken it up. */
let emitted: Emission | undefined

/** Every place downstream of `subscriber` where its messages may be taken up, the nearest first. */
export function uptakesOf(subscriber: unknown): Uptake[] {
  const found: Uptake[] = []
  for (let next = downstreamOf(subscriber); next !== undefined; next = downstreamOf(next)) {
    const uptake = uptakes.get(next) ?? new Uptake(next)
    uptakes.set(next, uptake)
    found.push(uptake)
  }
  return found
}

/** The part of a subscriber that a source emits to. */
interface Source<T> {
  readonly closed: boolean
  next(value: T): void
}

/** Emits a message to `source`; calls `finish` when the message is finished. */
export function emit<T>(source: Source<T>, message: T, by: readonly Uptake[], finish: Finish): void {
  const emission = { source, by, finish }
  emitted = emission
  source.next(message)
  if (emitted !== emission) return
  emitted = undefined
  const busy = by.find(uptake => uptake.isBusy)
  if (busy === undefined) finish(true)
  else busy.wait(finish)
}

export class Uptake {
  readonly #waiting: Finish[] = []
  #running = 0

  constructor(downstream: Downstream) {
    const add = downstream.add
    downstream.add = (teardown: unknown) => {
      add.call(downstream, teardown)
      if (isDownstream(teardown)) this.#takeUp(teardown)
    }
    // After this teardown no operator takes up waiting messages.
    add.call(downstream, () => this.#finishAll(false))
  }

  get isBusy(): boolean {
    return this.#running > 0
  }

  wait(finish: Finish): void {
    this.#waiting.push(finish)
  }

  #takeUp(inner: Downstream): void {
    const finish = this.#waiting.shift() ?? this.#takeEmitted()
    if (finish === undefined) return
    this.#running++
    inner.add(() => {
      this.#running--
      finish(true)
      // The operator takes up its next message synchronously, if it has one.
      queueMicrotask(() => {
        if (this.#running === 0) this.#finishAll(true)
      })
    })
  }

  #takeEmitted(): Finish | undefined {
    if (!emitted?.by.includes(this)) return undefined
    // `retry`, `repeat`, `concat`: the new subscriber is for the next subscription to a source, not for the
    // message.
    if (emitted.source.closed) return undefined
    const { finish } = emitted
    emitted = undefined
    return finish
  }

  #finishAll(isHandled: boolean): void {
    for (const finish of this.#waiting.splice(0)) finish(isHandled)
  }
}

/** `destination` is protected in RxJS 7; without it every emission counts as handled when the call returns. */
function downstreamOf(subscriber: unknown): Downstream | undefined {
  const { destination } = subscriber as { destination?: unknown }
  return isDownstream(destination) ? destination : undefined
}

function isDownstream(value: unknown): value is Downstream {
  return (
    typeof value === 'object' &&
    value !== null &&
    typeof (value as { add?: unknown }).add === 'function' &&
    typeof (value as { next?: unknown }).next === 'function'
  )
}
