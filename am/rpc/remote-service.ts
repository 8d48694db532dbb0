/** One peer that offers a service: connected when it is needed, and anew after it was lost. */
import { clearTimeout, setTimeout } from '../../nic/real-time.ts'
import { watchAbort } from '../abort-watch.ts'
import { checkWait, type WaitOptions } from '../call.ts'
import type { Endpoint } from '../endpoint.ts'
import { DESTINATIONS_MAX } from '../refusals.ts'
import type { Codec } from './codec.ts'
import { Flow } from './flow.ts'
import { type LinkCall, lostError } from './link.ts'
import { type Found, Links } from './links.ts'
import { decodeError, type RpcError, rpcError } from './rpc-error.ts'
import { CANCELLED, DEADLINE, FLAG_ERROR, FLAG_LAST, FLAG_OPENER } from './rpc-layout.ts'
import { type Methods, type Service, signatureOf } from './service.ts'

/** Pauses between attempts to reach a lost peer. */
const PAUSE_MS_MIN = 50
const PAUSE_MS_MAX = 5000

/** A peer of a client went up or down. */
export interface PeerEvent {
  readonly type: 'up' | 'down'
  /** As it was given to `connectService`: a name, or a destination. */
  readonly peer: string | number
  /** Why it went down, as `RpcError` has it. */
  readonly reason: string | undefined
}

export class RemoteService {
  readonly peer: string | number
  /** Calls under way. */
  underWay = 0
  isUp = false
  private readonly endpoint: Endpoint
  private readonly service: Service
  private readonly onEvent: (event: PeerEvent) => void
  private readonly tag: bigint | undefined
  /** Our own entry of the translation table, if the peer was given by name. */
  private destination: number | undefined
  private found: Found | undefined
  private finding: Promise<Found> | undefined
  private pauseMs = PAUSE_MS_MIN
  private timer: NodeJS.Timeout | undefined
  private isClosed = false

  constructor(
    endpoint: Endpoint,
    peer: string | number,
    service: Service,
    tag: bigint | undefined,
    onEvent: (event: PeerEvent) => void,
  ) {
    this.endpoint = endpoint
    this.peer = peer
    this.service = service
    this.tag = tag
    this.onEvent = onEvent
    this.destination = typeof peer === 'number' ? peer : undefined
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
    this.timer = setTimeout(() => {
      this.timer = undefined
      this.connect().catch(() => this.connectLater())
    }, this.pauseMs)
    this.timer.unref()
    this.pauseMs = Math.min(PAUSE_MS_MAX, 2 * this.pauseMs)
  }

  close(): void {
    this.isClosed = true
    clearTimeout(this.timer)
    this.found = undefined
    if (typeof this.peer === 'string') this.unmap()
  }

  call(key: string, input: unknown, options: WaitOptions | undefined): Promise<unknown> {
    const { found } = this
    if (found !== undefined) return this.callIn(found, key, input, options)
    return this.connect().then(found => this.callIn(found, key, input, options))
  }

  async stream(key: string, input: unknown, options: WaitOptions | undefined): Promise<Flow> {
    const { link, service, method } = this.methodOf(this.found ?? (await this.connect()), key)
    if (options !== undefined) checkWait(options)
    const { input: codec = this.service.codec } = this.service.methods[key] as Methods[string]
    const flow = new Flow(link, 'opener', { own: true })
    flow.id = link.open(flow, service, method, timeoutOf(options), FLAG_LAST, codec.encode(input))
    return flow
  }

  private async find(): Promise<Found> {
    if (typeof this.peer === 'string' && this.destination === undefined) {
      this.destination = freeDestination(this.endpoint)
      try {
        await this.endpoint.map(this.destination, this.peer, this.tag)
      } catch (error) {
        this.unmap()
        throw rpcError('ERR_RPC_UNAVAILABLE', `${this.peer} cannot be reached: ${(error as Error).message}`, {
          cause: error,
          reason: (error as { code?: string }).code ?? 'UNKNOWN',
        })
      }
    }
    try {
      const found = await Links.of(this.endpoint).find(this.destination as number, this.service.name)
      if (this.isClosed) throw lostError(String(this.peer), 'CLOSED')
      this.found = found
    } catch (error) {
      if (typeof this.peer === 'string') this.unmap()
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
    if (typeof this.peer === 'string') this.unmap()
    this.onEvent({ type: 'down', peer: this.peer, reason: error.reason ?? error.code })
  }

  private unmap(): void {
    const { destination, endpoint } = this
    if (destination === undefined) return
    this.destination = undefined
    destinationsOf(endpoint).delete(destination)
    try {
      endpoint.unmap(destination)
    } catch {
      // The endpoint is closed.
    }
  }

  private methodOf(found: Found, key: string): { link: Found['link']; service: number; method: number } {
    const { link, service, methods } = found
    const method = methods.get(signatureOf(this.service, key))
    if (method !== undefined) return { link, service, method }
    const other = [...methods.keys()].find(signature => signature.startsWith(`${key} `))
    const why =
      other === undefined ? `has no method ${key}` : `has ${other}, and not ${signatureOf(this.service, key)}`
    throw rpcError('ERR_RPC_UNIMPLEMENTED', `${link.peerName} ${why}`)
  }

  private callIn(
    found: Found,
    key: string,
    input: unknown,
    options: WaitOptions | undefined,
  ): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (options !== undefined) checkWait(options)
      const { link, service, method } = this.methodOf(found, key)
      const { input: codec = this.service.codec, output = this.service.codec } = this.service.methods[
        key
      ] as Methods[string]
      const call = new PendingResult(this, found, output, resolve, reject)
      call.id = link.open(call, service, method, timeoutOf(options), FLAG_LAST, codec.encode(input))
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
  private readonly codec: Codec
  private readonly resolve: (value: unknown) => void
  private readonly reject: (error: unknown) => void
  private timer: NodeJS.Timeout | undefined
  private forgetSignal: (() => void) | undefined

  constructor(
    service: RemoteService,
    found: Found,
    codec: Codec,
    resolve: (value: unknown) => void,
    reject: (error: unknown) => void,
  ) {
    this.service = service
    this.found = found
    this.codec = codec
    this.resolve = resolve
    this.reject = reject
  }

  watch({ signal, timeoutMs }: WaitOptions): void {
    if (signal !== undefined) this.forgetSignal = watchAbort(signal, reason => this.cancel(CANCELLED, reason))
    if (timeoutMs !== undefined) {
      this.timer = setTimeout(() => {
        const why = `${this.found.link.peerName} did not answer within ${timeoutMs} ms`
        this.cancel(DEADLINE, rpcError('ERR_RPC_DEADLINE', why))
      }, timeoutMs)
    }
  }

  handleData(bytes: Buffer, flags: number): void {
    this.finish()
    if ((flags & FLAG_ERROR) !== 0) return this.reject(decodeError(bytes))
    try {
      this.resolve(this.codec.decode(bytes))
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
    if (this.timer !== undefined) clearTimeout(this.timer)
    this.forgetSignal?.()
  }
}

/** 0 on the wire means none. */
function timeoutOf(options: WaitOptions | undefined): number {
  return options?.timeoutMs === undefined ? 0 : Math.max(1, Math.ceil(options.timeoutMs))
}

/** Destinations that RPC has mapped for itself, from the last one downwards: programs begin at 0. */
const ownDestinations = new WeakMap<Endpoint, Set<number>>()

function destinationsOf(endpoint: Endpoint): Set<number> {
  const own = ownDestinations.get(endpoint) ?? new Set()
  ownDestinations.set(endpoint, own)
  return own
}

function freeDestination(endpoint: Endpoint): number {
  const own = destinationsOf(endpoint)
  let destination = DESTINATIONS_MAX - 1
  while (own.has(destination)) destination--
  own.add(destination)
  return destination
}
