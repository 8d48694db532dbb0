/** The serving side of a service. */
import type { Observable, Subscription } from 'rxjs'
import type { Timer } from '../../nic/clock.ts'
import { queueMicrotask } from '../../nic/real-time.ts'
import type { Endpoint } from '../endpoint.ts'
import { decodeWith, encodeWith, formOf } from './codec.ts'
import { cancelError, Flow } from './flow.ts'
import type { Link, LinkCall, Opened } from './link.ts'
import { Links, type Served } from './links.ts'
import { type RpcError, rpcError } from './rpc-error.ts'
import { DEADLINE } from './rpc-layout.ts'
import {
  type CallContext,
  type Handlers,
  type Items,
  type MethodSpec,
  type Methods,
  type Service,
  specsOf,
} from './service.ts'

/** Items of an Observable that wait for their receiver: an Observable cannot be slowed. */
const OBSERVABLE_ITEMS_MAX = 1024

const NO_SLOT = -1
/** Its `then` costs less than `queueMicrotask`, which makes an AsyncResource. */
const RESOLVED = Promise.resolve()

type AnyHandler = (input: unknown, context: CallContext) => unknown

interface ServedMethod extends MethodSpec {
  readonly handler: AnyHandler
}

/** A service that is offered. */
export interface Serving {
  /** Offers it no more; calls under way go on. */
  close(): void
}

/**
 * Offers a service to all peers of the endpoint. An exception of a handler answers its call, and ends nothing else. Handlers run
 * outside of handlers of active messages: they may send, call and wait. `handlers` may be an object of a class.
 */
export function serve<M extends Methods>(
  endpoint: Endpoint,
  service: Service<M>,
  handlers: Handlers<M>,
): Serving {
  const methods = specsOf(service).map(spec => {
    const handler = handlers[spec.key] as AnyHandler | undefined
    if (typeof handler !== 'function')
      throw rpcError('ERR_RPC_ARGUMENT', `there is no handler for ${spec.key}`)
    return { ...spec, handler: handler.bind(handlers) }
  })
  const links = Links.of(endpoint)
  let arrived: ServedCall[] = []
  const begun: ServedCall[] = []
  const release = (): void => {
    for (const call of begun.splice(0)) call.release()
  }
  const begin = (): void => {
    const calls = arrived
    arrived = []
    for (const call of calls) {
      call.begin()
      // Most handlers have a result by the next turn. The credit of another's request goes back then.
      if (call.isPending && begun.push(call) === 1) links.clock.setImmediate(release)
    }
  }
  const served: Served = {
    name: service.name,
    methods: methods.map(({ signature }) => signature),
    accept: opened => {
      const call = new ServedCall(opened, methods[opened.method] as ServedMethod)
      if (arrived.push(call) === 1) void RESOLVED.then(begin)
      return call.linkCall
    },
  }
  return { close: links.serve(served) }
}

/** One call of a peer. */
class ServedCall implements CallContext, LinkCall {
  /** What the link knows the call by: this, or the flow of a stream. */
  readonly linkCall: LinkCall
  private readonly link: Link
  private readonly opened: Opened
  private readonly method: ServedMethod
  private readonly flow: Flow | undefined
  private aborting: AbortController | undefined
  private stopped: RpcError | undefined
  private timer: Timer | undefined
  /** Of the request, until it is answered or released. */
  private slot: number

  constructor(opened: Opened, method: ServedMethod) {
    this.opened = opened
    this.link = opened.link
    this.slot = opened.slot
    this.method = method
    if (method.kind === 'method') {
      this.flow = undefined
      this.linkCall = this
    } else {
      this.flow = new Flow(opened.link, 'acceptor', { peer: true })
      this.flow.id = opened.id
      this.flow.onStop = error => this.stop(error)
      this.linkCall = this.flow
    }
  }

  get timeoutMs(): number | undefined {
    const { timeoutMs } = this.opened
    return timeoutMs > 0 ? timeoutMs : undefined
  }

  get source(): string {
    return this.link.peerName
  }

  get signal(): AbortSignal {
    if (this.aborting === undefined) {
      this.aborting = new AbortController()
      if (this.stopped !== undefined) this.aborting.abort(this.stopped)
    }
    return this.aborting.signal
  }

  /** The handler has no result yet. */
  get isPending(): boolean {
    return this.slot !== NO_SLOT
  }

  /** Gives the credit of the request back. */
  release(): void {
    this.link.release(this.takeSlot())
  }

  begin(): void {
    if (this.flow !== undefined || this.stopped !== undefined) this.release()
    if (this.stopped !== undefined) return
    const { bytes, flags, timeoutMs } = this.opened
    const { input, handler } = this.method
    if (timeoutMs > 0) {
      this.timer = this.link.clock.setTimeout(() => this.stop(cancelError(DEADLINE)), timeoutMs)
    }
    let result: unknown
    try {
      result = handler(decodeWith(input, bytes, flags), this)
    } catch (error) {
      return this.fail(error)
    }
    if (isThenable(result)) {
      result.then(
        value => this.finish(value),
        error => this.fail(error),
      )
    } else this.finish(result)
  }

  handleData(): void {}

  handleCredit(): void {}

  handleCancel(reason: number): void {
    this.link.forget(this.opened.id, 0)
    queueMicrotask(() => this.stop(cancelError(reason)))
  }

  handleLost(error: RpcError): void {
    queueMicrotask(() => this.stop(error))
  }

  private takeSlot(): number {
    const { slot } = this
    this.slot = NO_SLOT
    return slot
  }

  private sendItem(flow: Flow, item: unknown): void {
    const { output } = this.method
    const form = formOf(output, item)
    flow.send(encodeWith(output, item, form), form)
  }

  private stop(error: RpcError): void {
    if (this.stopped !== undefined) return
    this.stopped = error
    this.link.clock.clearTimeout(this.timer)
    this.aborting?.abort(error)
  }

  private finish(value: unknown): void {
    if (this.flow !== undefined) {
      this.sendItems(this.flow, value as Items<unknown>).catch(error => this.fail(error))
      return
    }
    if (this.stopped !== undefined) return
    try {
      const { output } = this.method
      const form = formOf(output, value)
      const bytes = encodeWith(output, value, form)
      this.link.answer(this.takeSlot(), this.opened.id, bytes, form)
    } catch (error) {
      return this.fail(error)
    }
    this.close()
  }

  /** Answers with an error. */
  private fail(error: unknown): void {
    this.release()
    if (this.flow !== undefined) this.flow.fail(error)
    else if (this.stopped === undefined) this.link.sendError(this.opened.id, 0, error)
    this.close()
  }

  private close(): void {
    this.link.clock.clearTimeout(this.timer)
    this.link.forget(this.opened.id, 0)
  }

  private async sendItems(flow: Flow, items: Items<unknown>): Promise<void> {
    if (isObservable(items)) return this.sendObservable(flow, items)
    if (
      typeof items !== 'object' ||
      items === null ||
      !(Symbol.asyncIterator in items || Symbol.iterator in items)
    ) {
      throw rpcError(
        'ERR_RPC_ARGUMENT',
        `the handler of ${this.method.key} must return an iterable or an observable`,
      )
    }
    for await (const item of items) {
      if (this.stopped !== undefined) return flow.fail(this.stopped) // leaving the loop ends the iterator
      if (!flow.maySend) await flow.ready().catch(() => {})
      if (this.stopped !== undefined || flow.error !== undefined) return flow.fail(this.stopped)
      this.sendItem(flow, item)
    }
    this.link.clock.clearTimeout(this.timer)
    flow.end()
  }

  private sendObservable(flow: Flow, items: Observable<unknown>): void {
    const waiting: unknown[] = []
    let hasCompleted = false
    let isSending = false
    let isOver = false
    let subscription: Subscription | undefined
    const send = async (): Promise<void> => {
      isSending = true
      while (waiting.length > 0 && flow.error === undefined) {
        if (!flow.maySend) await flow.ready().catch(() => {})
        this.sendItem(flow, waiting.shift())
      }
      isSending = false
      if (hasCompleted) flow.end()
    }
    const sendSafely = (): void => {
      send().catch(fail)
    }
    const leave = (): void => {
      isOver = true
      waiting.length = 0
      subscription?.unsubscribe()
    }
    const fail = (error: unknown): void => {
      leave()
      this.fail(error)
    }
    flow.onStop = error => {
      this.stop(error)
      leave()
    }
    subscription = items.subscribe({
      next: item => {
        if (isOver) return // a synchronous observable cannot be left while it emits
        if (waiting.length >= OBSERVABLE_ITEMS_MAX) {
          const why = `${OBSERVABLE_ITEMS_MAX} items wait: the caller is too slow for this observable`
          return fail(rpcError('ERR_RPC_EXHAUSTED', why))
        }
        waiting.push(item)
        if (!isSending) sendSafely()
      },
      error: fail,
      complete: () => {
        hasCompleted = true
        this.link.clock.clearTimeout(this.timer)
        if (!isSending) sendSafely()
      },
    })
    if (isOver) subscription.unsubscribe()
  }
}

function isThenable(result: unknown): result is PromiseLike<unknown> {
  return typeof (result as { then?: unknown } | null | undefined)?.then === 'function'
}

function isObservable(items: unknown): items is Observable<unknown> {
  return typeof (items as { subscribe?: unknown } | null)?.subscribe === 'function'
}
