/** Virtual time, in microseconds: events run one after another, each at its moment, and no time passes in between. */

export interface TimelineEvent {
  readonly timeUs: number
  /** Events of one moment run in the order in which they were scheduled. */
  readonly order: number
  readonly run: () => void
  isCancelled: boolean
}

export class Timeline {
  nowUs = 0
  /** Promises may have been settled: whoever runs the events lets them go on before the next one. */
  hasSettled = false
  /** Events that have run. */
  count = 0
  #scheduled = 0
  /** A binary heap: no event is earlier than its parent. */
  readonly #heap: TimelineEvent[] = []

  /** When the next event is due; infinity if there is none. */
  get nextUs(): number {
    return this.#heap[0]?.timeUs ?? Number.POSITIVE_INFINITY
  }

  /** An event cannot be in the past. */
  schedule(timeUs: number, run: () => void): TimelineEvent {
    const event = { timeUs: Math.max(timeUs, this.nowUs), order: this.#scheduled++, run, isCancelled: false }
    this.#push(event)
    return event
  }

  /** Runs the next event; false if there is none. */
  step(): boolean {
    const event = this.#pop()
    if (event === undefined) return false
    if (event.isCancelled) return true
    this.nowUs = event.timeUs
    this.count++
    event.run()
    return true
  }

  /** Runs what is due until then, and lets the time pass. */
  runUntil(timeUs: number): void {
    while (this.nextUs <= timeUs) this.step()
    this.nowUs = Math.max(this.nowUs, timeUs)
  }

  #push(event: TimelineEvent): void {
    const heap = this.#heap
    let at = heap.length
    heap.push(event)
    while (at > 0) {
      const parent = (at - 1) >> 1
      const above = heap[parent] as TimelineEvent
      if (!isBefore(event, above)) break
      heap[at] = above
      at = parent
    }
    heap[at] = event
  }

  #pop(): TimelineEvent | undefined {
    const heap = this.#heap
    const first = heap[0]
    const last = heap.pop()
    if (first === undefined || last === undefined || heap.length === 0) return first
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= heap.length) break
      const right = heap[child + 1]
      if (right !== undefined && isBefore(right, heap[child] as TimelineEvent)) child++
      const below = heap[child] as TimelineEvent
      if (!isBefore(below, last)) break
      heap[at] = below
      at = child
    }
    heap[at] = last
    return first
  }
}

function isBefore(a: TimelineEvent, b: TimelineEvent): boolean {
  return a.timeUs < b.timeUs || (a.timeUs === b.timeUs && a.order < b.order)
}
