/**
 * A port to another process that looks like a `MessagePort` of `node:worker_threads`: for RPC systems that speak through one.
 * Data is cloned by `v8.serialize`. Order is kept; a receiver whose listener is slow to be added, or not started, stops its
 * sender after a window (flow.ts).
 */
import { performance } from '../../nic/performance.ts'
import { queueMicrotask, sleep } from '../../nic/real-time.ts'
import { Endpoint } from '../endpoint.ts'
import { decodeWith, encodeWith, formOf, v8Codec } from './codec.ts'
import { Flow, type Item } from './flow.ts'
import { Links } from './links.ts'
import type { RpcError } from './rpc-error.ts'
import { rpcError } from './rpc-error.ts'
import { OWN_MEMORY, PORT_QUEUE_BYTES_MAX } from './rpc-layout.ts'

/** How long `messagePort` looks for a peer that accepts ports on the channel: it may still start. */
const OPEN_MS_MAX = 10_000
const PAUSE_MS = 20
const NO_BYTES = new Uint8Array(0)

export interface PortOptions {
  /** Tells ports of one endpoint apart; by default the empty name. */
  readonly channel?: string
}

interface PortEvents {
  message: unknown
  messageerror: Error
  close: undefined
}

type PortListener<K extends keyof PortEvents> = (value: PortEvents[K]) => void
type MessageListener = (event: MessageEvent) => void
type PortEventListener = MessageListener | { handleEvent(event: MessageEvent): void }

/**
 * One end. Messages are delivered once there is a listener for 'message', or after `start()`. `close` is emitted at both ends, after
 * what was posted before; also when the other process dies: then `closeReason` says why.
 */
export class FastPort {
  /** As of a worker's port: set it to receive events. */
  #onmessage: MessageListener | null = null
  #onmessageerror: MessageListener | null = null
  /** Why the port has closed by itself. */
  closeReason: RpcError | undefined
  readonly #listeners = new Map<
    string,
    { readonly given: unknown; readonly call: (value: unknown) => void }[]
  >()
  /** Posted messages without a flow or a window. */
  readonly #queue: { readonly bytes: Uint8Array; readonly form: number }[] = []
  #queuedBytes = 0
  #flow: Flow | undefined
  #isStarted = false
  #isClosing = false
  #isClosed = false
  #isWaiting = false

  /** Use `messagePort` and `acceptPorts`. */
  static attach(port: FastPort, flow: Flow): void {
    port.#attach(flow)
  }

  static fail(port: FastPort, error: RpcError): void {
    port.#end(error)
  }

  /**
   * Sends a clone. Throws what `v8.serialize` throws for a value that cannot be cloned. An ArrayBuffer in `transfer` is copied
   * and then detached; nothing else can be transferred to another process.
   */
  postMessage(
    value: unknown,
    transfer: readonly unknown[] | { readonly transfer?: readonly unknown[] } = [],
  ): void {
    const given: readonly unknown[] = Array.isArray(transfer)
      ? transfer
      : ((transfer as { transfer?: readonly unknown[] }).transfer ?? [])
    if (!given.every(one => one instanceof ArrayBuffer)) {
      throw rpcError('ERR_RPC_ARGUMENT', 'only an ArrayBuffer can be transferred to another process')
    }
    const flow = this.#flow
    const isNext = flow?.maySend === true && this.#queue.length === 0
    const form = formOf(v8Codec, value)
    const own = encodeWith(v8Codec, value, form)
    const bytes = (form & OWN_MEMORY) !== 0 && (!isNext || given.length > 0) ? new Uint8Array(own) : own
    for (const one of given) structuredClone(one, { transfer: [one as ArrayBuffer] })
    if (this.#isClosing || this.#isClosed) return
    if (this.#queuedBytes + bytes.length > PORT_QUEUE_BYTES_MAX) {
      throw rpcError('ERR_RPC_EXHAUSTED', `${this.#queuedBytes} bytes wait for the receiver already`)
    }
    if (isNext) return flow.send(bytes, form)
    this.#queue.push({ bytes, form })
    this.#queuedBytes += bytes.length
    this.#sendQueued()
  }

  on<K extends keyof PortEvents>(name: K, listener: PortListener<K>): this {
    return this.#add(name, listener, listener as (value: unknown) => void)
  }

  once<K extends keyof PortEvents>(name: K, listener: PortListener<K>): this {
    return this.#add(name, listener, value => {
      this.#remove(name, listener)
      listener(value as PortEvents[K])
    })
  }

  off<K extends keyof PortEvents>(name: K, listener: PortListener<K>): this {
    return this.#remove(name, listener)
  }

  addEventListener(name: string, listener: PortEventListener): void {
    const call: MessageListener =
      typeof listener === 'function' ? listener : event => listener.handleEvent(event)
    this.#add(name, listener, data => call(new MessageEvent(name, { data })))
  }

  removeEventListener(name: string, listener: PortEventListener): void {
    this.#remove(name, listener)
  }

  /** Calls the listeners for its type with its data; always true. */
  dispatchEvent(event: Event): boolean {
    this.#emit(event.type, (event as MessageEvent).data)
    return true
  }

  get onmessage(): MessageListener | null {
    return this.#onmessage
  }

  set onmessage(listener: MessageListener | null) {
    this.#replace('message', this.#onmessage, listener)
    this.#onmessage = listener
  }

  get onmessageerror(): MessageListener | null {
    return this.#onmessageerror
  }

  set onmessageerror(listener: MessageListener | null) {
    this.#replace('messageerror', this.#onmessageerror, listener)
    this.#onmessageerror = listener
  }

  start(): void {
    this.#isStarted = true
    queueMicrotask(() => this.#deliver())
  }

  /** What was posted before still arrives. */
  close(): void {
    if (this.#isClosing) return
    this.#isClosing = true
    this.#endIfSent()
  }

  #attach(flow: Flow): void {
    this.#flow = flow
    flow.onNews = () => this.#deliver()
    flow.onStop = error => this.#end(error)
    this.#sendQueued()
    this.#endIfSent()
  }

  #sendQueued(): void {
    const flow = this.#flow
    if (flow === undefined || this.#isWaiting) return
    while (flow.maySend && this.#queue.length > 0) {
      const { bytes, form } = this.#queue.shift() as { bytes: Uint8Array; form: number }
      this.#queuedBytes -= bytes.length
      flow.send(bytes, form)
    }
    if (this.#queue.length === 0 || flow.error !== undefined) return
    this.#isWaiting = true
    const goOn = (): void => {
      this.#isWaiting = false
      this.#sendQueued()
      this.#endIfSent()
    }
    flow.ready().then(goOn, () => {})
  }

  #endIfSent(): void {
    if (!this.#isClosing || this.#queue.length > 0 || this.#flow === undefined) return
    this.#flow.end()
    this.#end(undefined)
  }

  #deliver(): void {
    const flow = this.#flow
    if (flow === undefined || !this.#isStarted || this.#isClosing) return
    for (let item = flow.take(); item !== undefined && !this.#isClosing; item = flow.take())
      this.#handle(item)
    if (flow.isDrained && flow.error === undefined) this.close()
  }

  #handle({ bytes, flags }: Item): void {
    let value: unknown
    try {
      value = decodeWith(v8Codec, bytes, flags)
    } catch (error) {
      return this.#emit('messageerror', error)
    }
    this.#emit('message', value)
  }

  #end(error: RpcError | undefined): void {
    if (this.#isClosed) return
    this.#deliver()
    this.#isClosing = true
    this.#isClosed = true
    this.closeReason = error
    this.#queue.length = 0
    const flow = this.#flow
    if (flow !== undefined) {
      // What still comes is dropped until the other end has closed, too.
      flow.onNews = () => {
        while (flow.take() !== undefined);
      }
      flow.onNews()
    }
    queueMicrotask(() => this.#emit('close', undefined))
  }

  #add(name: string, given: unknown, call: (value: unknown) => void): this {
    this.#listeners.set(name, [...(this.#listeners.get(name) ?? []), { given, call }])
    if (name === 'message' && !this.#isStarted) this.start()
    return this
  }

  #replace(name: string, before: MessageListener | null, after: MessageListener | null): void {
    if (before !== null) this.removeEventListener(name, before)
    if (after !== null) this.addEventListener(name, after)
  }

  #remove(name: string, given: unknown): this {
    const left = this.#listeners.get(name)?.filter(listener => listener.given !== given) ?? []
    this.#listeners.set(name, left)
    return this
  }

  #emit(name: string, value: unknown): void {
    for (const { call } of this.#listeners.get(name) ?? []) {
      try {
        call(value)
      } catch (error) {
        // As of an event: uncaught, and the next message still comes.
        queueMicrotask(() => {
          throw error
        })
      }
    }
  }
}

/** A port to a peer that accepts ports on the channel, now or within ten seconds. It may be used at once. */
export function messagePort(endpoint: Endpoint, destination: number, options: PortOptions = {}): FastPort {
  const port = new FastPort()
  Links.of(endpoint)
  openPort(endpoint, destination, nameOf(options)).then(
    flow => FastPort.attach(port, flow),
    error => FastPort.fail(port, error),
  )
  return port
}

/** Accepts ports of all peers of the endpoint on a channel. The returned object's `close()` accepts no more. */
export function acceptPorts(
  endpoint: Endpoint,
  options: PortOptions,
  onPort: (port: FastPort, source: string) => void,
): { close(): void } {
  const close = Links.of(endpoint).serve({
    name: nameOf(options),
    methods: ['port'],
    accept: ({ link, id, slot }) => {
      link.release(slot)
      const flow = new Flow(link, 'acceptor')
      flow.id = id
      const port = new FastPort()
      FastPort.attach(port, flow)
      queueMicrotask(() => onPort(port, link.peerName))
      return flow
    },
  })
  return { close }
}

/** No service of a program has such a name: it has a space. */
function nameOf({ channel = '' }: PortOptions): string {
  return `port ${channel}`
}

async function openPort(endpoint: Endpoint, destination: number, name: string): Promise<Flow> {
  const deadlineMs = performance.now() + OPEN_MS_MAX
  for (;;) {
    try {
      const { link, service } = await Links.of(endpoint).find(
        Endpoint.destinationOf(endpoint, destination),
        name,
      )
      const flow = new Flow(link, 'opener')
      flow.id = link.open(flow, service, 0, 0, 0, NO_BYTES)
      return flow
    } catch (error) {
      const mayCome = (error as RpcError).code === 'ERR_RPC_UNIMPLEMENTED' && performance.now() < deadlineMs
      if (!mayCome) throw error
      await sleep(PAUSE_MS)
    }
  }
}
