/** Questions that the daemon has asked to repeat later. */
import { type Clock, startInBackground, type Timer } from '../../nic/clock.ts'
import { type NameError, unavailable } from './errors.ts'

export class Pauses {
  readonly #clock: Clock
  readonly #waiting = new Map<Timer, (error: NameError) => void>()
  #isClosed = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** `isBackground`: does not keep the program alive. */
  wait(pauseMs: number, isBackground: boolean): Promise<void> {
    if (this.#isClosed) return Promise.reject(closedError())
    return new Promise((resolve, reject) => {
      const end = (): void => {
        this.#waiting.delete(timer)
        resolve()
      }
      const timer = isBackground
        ? startInBackground(this.#clock, end, pauseMs)
        : this.#clock.setTimeout(end, pauseMs)
      this.#waiting.set(timer, reject)
    })
  }

  /** No question is repeated. */
  close(): void {
    this.#isClosed = true
    for (const [timer, reject] of this.#waiting) {
      this.#clock.clearTimeout(timer)
      reject(closedError())
    }
    this.#waiting.clear()
  }
}

function closedError(): NameError {
  return unavailable(new Error('the client was closed'))
}
