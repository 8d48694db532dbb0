/** Connects that wait for a listener's answer, in the order of their CONNECTs. */
import { AsyncResource } from 'node:async_hooks'
import { performance } from '../../nic/performance.ts'
import { setTimeout } from '../../nic/real-time.ts'
import type { FastHandle } from '../handle/fast-handle-contract.ts'
import type { SocketStream as Stream } from '../stream/socket-channel.ts'

interface Asked {
  readonly handle: FastHandle
  readonly stream: Stream
  readonly askedMs: number
}

/** The timer is made in this context, so that it does not retain values of a program's AsyncLocalStorage. */
const scope = new AsyncResource('FASTSOCKETS')

type Report = (handle: FastHandle, stream: Stream) => void

/**
 * Calls `report` for each connect without an answer after `patienceMs`. One timer serves all, and each new connect drops
 * the answered ones before it: with a timer each, every socket of a busy client, closed or not, would stay in memory
 * until its timer runs.
 */
export class UnansweredConnects {
  readonly #patienceMs: number
  readonly #report: Report
  #asked: Asked[] = []
  #timer: NodeJS.Timeout | undefined

  constructor(patienceMs: number, report: Report) {
    this.#patienceMs = patienceMs
    this.#report = report
  }

  add(handle: FastHandle, stream: Stream): void {
    this.#forgetAnswered()
    this.#asked.push({ handle, stream, askedMs: performance.now() })
    if (this.#timer === undefined) this.#start(this.#patienceMs)
  }

  /** Drops the answered ones up to the first that waits; the next run of the timer drops those behind it. */
  #forgetAnswered(): void {
    let count = 0
    for (const { handle, stream } of this.#asked) {
      if (isUnanswered(handle, stream)) break
      count++
    }
    if (count > 0) this.#asked.splice(0, count)
  }

  readonly #handleTimer = (): void => {
    this.#timer = undefined
    const dueMs = performance.now() - this.#patienceMs
    const waiting: Asked[] = []
    for (const one of this.#asked) {
      const { handle, stream, askedMs } = one
      if (!isUnanswered(handle, stream)) continue
      if (askedMs > dueMs) waiting.push(one)
      else this.#report(handle, stream)
    }
    this.#asked = waiting
    const first = waiting[0]
    if (first !== undefined) this.#start(Math.ceil(first.askedMs - dueMs))
  }

  #start(ms: number): void {
    scope.runInAsyncScope(() => {
      this.#timer = setTimeout(this.#handleTimer, ms).unref()
    })
  }
}

export function isUnanswered(handle: FastHandle, stream: Stream): boolean {
  return !handle.isClosed && handle.stream === stream && stream.state === 'connecting'
}
