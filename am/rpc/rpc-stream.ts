/** A stream of items, as its caller has it. */
import type { Clock, Timer } from '../../nic/clock.ts'
import { watchAbort } from '../abort-watch.ts'
import type { WaitOptions } from '../call.ts'
import { type Codec, decodeWith } from './codec.ts'
import type { Flow } from './flow.ts'
import { rpcError } from './rpc-error.ts'
import { CANCELLED, DEADLINE } from './rpc-layout.ts'

/**
 * Ends when the handler's iterable ends; rejects with its error. Leaving the loop, or `return()`, cancels the call. The items that
 * wait here are bounded, and a slow loop slows the handler down. RxJS: `from(stream)`.
 */
export class RpcStream<T> implements AsyncIterableIterator<T> {
  private readonly opening: Promise<Flow>
  private readonly codec: Codec
  private readonly clock: Clock
  private flow: Flow | undefined
  private isOver = false
  /** What ended the stream on this side: an aborted signal, or the deadline. */
  private interruption: unknown
  private timer: Timer | undefined
  private forgetSignal: (() => void) | undefined

  constructor(opening: Promise<Flow>, codec: Codec, clock: Clock, { signal, timeoutMs }: WaitOptions) {
    this.clock = clock
    this.codec = codec
    this.opening = opening.then(flow => {
      this.flow = flow
      if (this.isOver) this.stop(CANCELLED, this.interruption)
      return flow
    })
    this.opening.catch(() => this.finish())
    if (signal !== undefined && !signal.aborted) {
      this.forgetSignal = watchAbort(signal, reason => this.stop(CANCELLED, reason))
    }
    if (timeoutMs !== undefined) {
      const error = rpcError('ERR_RPC_DEADLINE', `the stream has not ended within ${timeoutMs} ms`)
      this.timer = clock.setTimeout(() => this.stop(DEADLINE, error), timeoutMs)
    }
  }

  /** Items that have come and wait here. */
  get heldItems(): number {
    return this.flow?.heldItems ?? 0
  }

  async next(): Promise<IteratorResult<T>> {
    try {
      const flow = this.flow ?? (await this.opening)
      const item = this.interruption === undefined ? await flow.next() : undefined
      if (this.interruption !== undefined) throw this.interruption
      if (item !== undefined) {
        return { value: decodeWith(this.codec, item.bytes, item.flags) as T, done: false }
      }
      this.finish()
      return { value: undefined, done: true }
    } catch (error) {
      this.finish()
      throw this.interruption ?? error
    }
  }

  async return(): Promise<IteratorResult<T>> {
    this.stop(CANCELLED, undefined)
    return { value: undefined, done: true }
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  private stop(reason: typeof CANCELLED | typeof DEADLINE, error: unknown): void {
    this.interruption ??= error
    this.finish()
    const why = rpcError('ERR_RPC_CANCELLED', 'the stream was cancelled on this side', { cause: error })
    this.flow?.cancel(reason, why)
  }

  private finish(): void {
    this.isOver = true
    this.clock.clearTimeout(this.timer)
    this.forgetSignal?.()
  }
}
