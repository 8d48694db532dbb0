/** One peer that offers a service: connected when it is needed, and anew after it was lost. */
import type { Clock, Timer } from '../../nic/clock.ts'
import { watchAbort } from '../abort-watch.ts'
import { checkWait, type WaitOptions } from '../call.ts'
import { type Destination, Endpoint } from '../endpoint.ts'
import { decodeWith, encodeWith, formOf } from './codec.ts'
import { Flow } from './flow.ts'
import { type LinkCall, lostError } from './link.ts'
import { type Found, Links } from './links.ts'
import { decodeError, type RpcError, rpcError } from './rpc-error.ts'
import { CANCELLED, DEADLINE, FLAG_ERROR, FLAG_LAST, FLAG_OPENER } from './rpc-layout.ts'
import type { MethodSpec } from './service.ts'

/** Pauses between attempts to reach a lost peer. */
const PAUSE_MS_MIN = 50
const PAUSE_MS_MAX = 5000

/** A peer of a client went up or down. */
export interface PeerEvent {
  readonly type: 'up' | 'down'
  /** As it was given to `connectService`: a name, or a destination. */
  readonly peer: string | number
  /** Why it went down, as `RpcError` has it; `NO_NAME` if its name was withdrawn. */
  readonly reason: string | undefined
}

export class RemoteService {
  readonly peer: string | number
  /** Calls under way. */
  underWay = 0
  isUp = false
  private readonly endpoint: Endpoint
  private readonly clock: Clock
  /** Name of the service. */
  private readonly name: string
  private readonly onEvent: (event: PeerEvent) => void
  private readonly tag: bigint | undefined
  /** Our own mapping, if the peer was given by name. */
  private mapping: Destination | undefined
  private found: Found | undefined
  private finding: Promise<Found> | undefined
  private pauseMs = PAUSE_MS_MIN
  private timer: Timer | undefined
  private isClosed = false

  constructor(
    endpoint: Endpoint,
    peer: string | number,
    name: string,
    tag: bigint | undefined,
    onEvent: (event: PeerEvent) => void,
  ) {
    this.endpoint = endpoint
    this.clock = Links.of(endpoint).clock
    this.peer = peer
    this.name = name
    this.tag = tag
    this.onEvent = onEvent
  }

  /** Connects, unless that is done or under way. */
  connect(): Promise<Found> {
    if (this.isClosed) return Promise.reject(lostError(String(this.peer), 'CLOSED'))
    if (this.found !== undefined) return Promise.resolve(this.found)
    this.finding ??= this.find().finally(() => {
      this.finding = undefined
    })
    return this.finding
  }

  /** Tries to connect in the background until it succeeds. */
  connectLater(): void {
    if (this.isClosed || this.timer !== undefined) return
    this.timer = this.clock.setTimeout(() => {
      this.timer = undefined
      this.connect().catch(() => this.connectLater())
    }, this.pauseMs)
    this.timer.unref()
    this.pauseMs = Math.min(PAUSE_MS_MAX, 2 * this.pauseMs)
  }

  close(): void {
    this.isClosed = true
    this.isUp = false
    this.clock.clearTimeout(this.timer)
    this.found = undefined
    this.unmap()
  }

  call(method: MethodSpec, input: unknown, options: WaitOptions | undefined): Promise<unknown> {
    const { found } = this
    if (found !== undefined) return this.callIn(found, method, input, options)
    return this.connect().then(found => this.callIn(found, method, input, options))
  }

  async stream(method: MethodSpec, input: unknown, options: WaitOptions | undefined): Promise<Flow> {
    const found = this.found ?? (await this.connect())
    if (options !== undefined) checkWait(options)
    const flow = new Flow(found.link, 'opener', { own: true })
    flow.id = openWith(flow, found, method, input, options)
    return flow
  }

  private async find(): Promise<Found> {
    try {
      const found = await Links.of(this.endpoint).find(await this.map(), this.name)
      if (this.isClosed) throw lostError(String(this.peer), 'CLOSED')
      this.found = found
    } catch (error) {
      this.unmap()
      throw error
    }
    this.pauseMs = PAUSE_MS_MIN
    this.isUp = true
    this.found.link.onOver(error => this.handleLoss(error))
    this.onEvent({ type: 'up', peer: this.peer, reason: undefined })
    return this.found
  }

  private handleLoss(error: RpcError): void {
    this.found = undefined
    this.isUp = false
    if (this.isClosed) return
    this.unmap()
    this.onEvent({ type: 'down', peer: this.peer, reason: error.reason ?? error.code })
  }

  private async map(): Promise<Destination> {
    const { endpoint, peer } = this
    if (typeof peer === 'number') return Endpoint.destinationOf(endpoint, peer)
    try {
      this.mapping ??= await Endpoint.mapApart(endpoint, peer, this.tag)
    } catch (error) {
      throw rpcError('ERR_RPC_UNAVAILABLE', (error as Error).message, {
        cause: error,
        reason: (error as { code?: string }).code ?? 'UNKNOWN',
      })
    }
    return this.mapping
  }

  private unmap(): void {
    const { mapping } = this
    this.mapping = undefined
    if (mapping !== undefined) Endpoint.unmapApart(this.endpoint, mapping)
  }

  private callIn(
    found: Found,
    method: MethodSpec,
    input: unknown,
    options: WaitOptions | undefined,
  ): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (options !== undefined) checkWait(options)
      const call = new PendingResult(this, found, method, resolve, reject)
      call.id = openWith(call, found, method, input, options)
      this.underWay++
      if (options !== undefined) call.watch(options)
    })
  }
}

/** A call of a method that waits for its result. */
class PendingResult implements LinkCall {
  id = 0
  private readonly service: RemoteService
  private readonly found: Found
  private readonly method: MethodSpec
  private readonly resolve: (value: unknown) => void
  private readonly reject: (error: unknown) => void
  private timer: Timer | undefined
  private forgetSignal: (() => void) | undefined

  constructor(
    service: RemoteService,
    found: Found,
    method: MethodSpec,
    resolve: (value: unknown) => void,
    reject: (error: unknown) => void,
  ) {
    this.service = service
    this.found = found
    this.method = method
    this.resolve = resolve
    this.reject = reject
  }

  watch({ signal, timeoutMs }: WaitOptions): void {
    if (signal !== undefined) this.forgetSignal = watchAbort(signal, reason => this.cancel(CANCELLED, reason))
    if (timeoutMs !== undefined) {
      this.timer = this.found.link.clock.setTimeout(() => {
        const why = `${this.found.link.peerName} did not answer ${this.method.key} within ${timeoutMs} ms`
        this.cancel(DEADLINE, rpcError('ERR_RPC_DEADLINE', why))
      }, timeoutMs)
    }
  }

  handleData(bytes: Uint8Array, flags: number): void {
    this.finish()
    if ((flags & FLAG_ERROR) !== 0) return this.reject(decodeError(bytes))
    try {
      this.resolve(decodeWith(this.method.output, bytes, flags))
    } catch (cause) {
      this.reject(
        rpcError('ERR_RPC_PAYLOAD', `the answer of ${this.found.link.peerName} cannot be decoded`, { cause }),
      )
    }
  }

  handleCredit(): void {}

  handleCancel(): void {
    this.finish()
    this.reject(rpcError('ERR_RPC_CANCELLED', `${this.found.link.peerName} has cancelled the call`))
  }

  handleLost(error: RpcError): void {
    this.finish()
    this.reject(error)
  }

  private cancel(reason: number, error: unknown): void {
    this.finish()
    this.found.link.sendCancel(this.id, FLAG_OPENER, reason)
    this.reject(error)
  }

  private finish(): void {
    this.service.underWay--
    this.found.link.forget(this.id, FLAG_OPENER)
    if (this.timer !== undefined) this.found.link.clock.clearTimeout(this.timer)
    this.forgetSignal?.()
  }
}

/** Opens a call with its argument; returns its number. */
function openWith(
  call: LinkCall,
  found: Found,
  method: MethodSpec,
  input: unknown,
  options: WaitOptions | undefined,
): number {
  const { link, service, methods } = found
  const number = methods.get(method.signature) ?? refuseMethod(found, method)
  const form = formOf(method.input, input)
  const bytes = encodeWith(method.input, input, form)
  return link.open(call, service, number, timeoutOf(options), FLAG_LAST | form, bytes)
}

function refuseMethod({ link, methods }: Found, { key, signature }: MethodSpec): never {
  const other = [...methods.keys()].find(other => other.startsWith(`${key} `))
  const why = other === undefined ? `has no method ${key}` : `has ${other}, and not ${signature}`
  throw rpcError('ERR_RPC_UNIMPLEMENTED', `${link.peerName} ${why}`)
}

/** 0 on the wire means none. */
function timeoutOf(options: WaitOptions | undefined): number {
  return options?.timeoutMs === undefined ? 0 : Math.max(1, Math.ceil(options.timeoutMs))
}
