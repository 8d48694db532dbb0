/** Limits the wait for bytes of TCP that the peer's count announces, or for its count after the end of TCP. */
import type { Timer } from '../../nic/clock.ts'
import { ablation } from '../../nic/index.ts'
import type { HandleHost } from '../handle/fast-handle-contract.ts'
import type { ConnectedTcp } from '../handle/tcp-below.ts'

/** An honest peer that needs so long is stopped: its end of TCP is out already. */
const COUNT_WAIT_MS = 30_000
const waitMs = ablation('count-wait') ?? COUNT_WAIT_MS

export class CountWait {
  readonly #tcp: ConnectedTcp
  readonly #host: HandleHost
  #timer: Timer | undefined

  constructor(tcp: ConnectedTcp, host: HandleHost) {
    this.#tcp = tcp
    this.#host = host
  }

  /** Calls `onTimeout` unless `stop` is called before. `isIdle`: TCP has brought nothing meanwhile. No effect while it waits. */
  start(onTimeout: (isIdle: boolean) => void): void {
    if (this.#timer !== undefined) return
    const { bytesRead } = this.#tcp
    this.#timer = this.#host.clock.setTimeout(() => {
      this.#timer = undefined
      onTimeout(this.#tcp.bytesRead === bytesRead)
    }, waitMs)
    this.#timer.unref()
  }

  stop(): void {
    this.#host.clock.clearTimeout(this.#timer)
    this.#timer = undefined
  }
}
