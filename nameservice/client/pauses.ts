/** Questions that the daemon has asked to repeat later. */
import { clearTimeout, setTimeout } from '../../nic/real-time.ts'
import { type NameError, unavailable } from './errors.ts'

export class Pauses {
  readonly #waiting = new Map<NodeJS.Timeout, (error: NameError) => void>()
  #isClosed = false

  /** `isBackground`: does not keep the program alive. */
  wait(pauseMs: number, isBackground: boolean): Promise<void> {
    if (this.#isClosed) return Promise.reject(closedError())
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(timer)
        resolve()
      }, pauseMs)
      if (isBackground) timer.unref()
      this.#waiting.set(timer, reject)
    })
  }

  /** No question is repeated. */
  close(): void {
    this.#isClosed = true
    for (const [timer, reject] of this.#waiting) {
      clearTimeout(timer)
      reject(closedError())
    }
    this.#waiting.clear()
  }
}

function closedError(): NameError {
  return unavailable(new Error('the client was closed'))
}
