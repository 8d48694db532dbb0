/**
 * When is a subscriber done with a message? Operators that project a value subscribe to an inner observable with a
 * subscriber of their own, which they add to the one downstream of them: at that moment they take the message up, and
 * when that inner subscriber ends they are done with it. While one of them runs, a message that was emitted without
 * being taken up waits inside the operator, and they take up what waits in order; when none runs, the emission was all
 * there was. Streams that are merged before the operator share its downstream subscriber, and so its line. An operator
 * that ends its subscription in the middle of a message, and begins the next one then, adds a subscriber, too: it takes
 * nothing up.
 */
import { queueMicrotask } from '../../nic/real-time.ts'

/** Called once: whether the message was handled, or was let go before anybody looked at it. */
export type Finish = (isHandled: boolean) => void

/** As much of a subscriber of RxJS 7 as is needed here. */
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

/** The message that is being emitted at this moment and has not been taken up, by whom and whereto. */
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

/** As much of the subscriber that a source emits to. */
interface Source<T> {
  readonly closed: boolean
  next(value: T): void
}

/** Emits a message to `source`; `finish` is called when it is done with. */
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
    // Nobody will take up what waits then.
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
      // The operator takes up the next message in this same turn, if it has one.
      queueMicrotask(() => {
        if (this.#running === 0) this.#finishAll(true)
      })
    })
  }

  #takeEmitted(): Finish | undefined {
    if (!emitted?.by.includes(this)) return undefined
    // `retry`, `repeat`, `concat`: what begins now is the next subscription to a source, and not for the message.
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
