/** `Transport` of @connectrpc/connect 2: the calling side. */
import type { DescMessage, DescMethodStreaming, MessageShape } from '@bufbuild/protobuf'
import {
  Code,
  ConnectError,
  createContextValues,
  type StreamRequest,
  type StreamResponse,
  type Transport,
  type UnaryRequest,
} from '@connectrpc/connect'
import {
  createMethodSerializationLookup,
  createMethodUrl,
  runStreamingCall,
  runUnaryCall,
} from '@connectrpc/connect/protocol'
import { type Endpoint, openEndpoint } from '../../endpoint.ts'
import { callOnce } from '../call-once.ts'
import { Flow } from '../flow.ts'
import type { Found } from '../links.ts'
import { RemoteService } from '../remote-service.ts'
import { rpcError } from '../rpc-error.ts'
import { CANCELLED, DEADLINE } from '../rpc-layout.ts'
import { decodeFrame, encodeFrame, toConnectError } from './frames.ts'
import { limitsOf, SERVICE_NAME, type SharedOptions, signatureOf } from './limits.ts'

const BASE_URL = 'https://fastsockets'

export interface FastTransportOptions extends SharedOptions {
  /** The serving endpoint: its own name, a published name, or `tcp:HOST:PORT`; or a destination of `endpoint`. */
  readonly to: string | number
  /** By default the transport opens one, which keeps the program alive only while calls are under way. */
  readonly endpoint?: Endpoint
  /** The tag of the serving endpoint; by default the one that it has published. */
  readonly tag?: bigint
  readonly defaultTimeoutMs?: number
}

/**
 * Connect's calls over active messages. It connects with the first call, and anew after the peer was lost. The peer's death answers
 * every call under way with `Code.Unavailable`; the cause says why.
 */
export function createFastTransport(options: FastTransportOptions): Transport {
  const limits = limitsOf(options)
  const peer = new TransportPeer(options)
  const { interceptors, binaryOptions, defaultTimeoutMs } = options
  const timeoutOf = (timeoutMs: number | undefined): number | undefined => {
    if (timeoutMs === undefined) return defaultTimeoutMs
    return timeoutMs <= 0 ? undefined : timeoutMs
  }
  return {
    async unary(method, signal, timeoutMs, header, message, contextValues) {
      const serialization = createMethodSerializationLookup(method, binaryOptions, undefined, limits)
      const [input, output] = [serialization.getI(true), serialization.getO(true)]
      const waitMs = timeoutOf(timeoutMs)
      const next = async (req: UnaryRequest<typeof method.input, typeof method.output>) => {
        const bytes = encodeFrame(req.header, undefined, input.serialize(req.message))
        const answer = await peer.use(found => {
          const number = methodNumber(found, method)
          const once = {
            service: found.service,
            method: number,
            timeoutMs: wireTimeout(waitMs),
            bytes,
            reasonOf,
          }
          return callOnce(found.link, once, req.signal)
        })
        const { header, trailer, message } = decodeFrame(answer)
        return {
          stream: false as const,
          service: method.parent,
          method,
          header,
          trailer,
          message: output.parse(message),
        }
      }
      return await runUnaryCall({
        ...(interceptors && { interceptors }),
        ...(signal && { signal }),
        ...(waitMs !== undefined && { timeoutMs: waitMs }),
        req: {
          ...requestOf(method, header),
          stream: false,
          method,
          message,
          contextValues: contextValues ?? createContextValues(),
        },
        next,
      })
    },
    async stream(method, signal, timeoutMs, header, input, contextValues) {
      const waitMs = timeoutOf(timeoutMs)
      return await runStreamingCall({
        ...(interceptors && { interceptors }),
        ...(signal && { signal }),
        ...(waitMs !== undefined && { timeoutMs: waitMs }),
        req: {
          ...requestOf(method, header),
          stream: true,
          method,
          message: input,
          contextValues: contextValues ?? createContextValues(),
        },
        next: req => streamCall(peer, method, req, waitMs, { ...limits, binaryOptions }),
      })
    },
  }
}

interface StreamSettings {
  readonly readMaxBytes: number
  readonly writeMaxBytes: number
  readonly binaryOptions: SharedOptions['binaryOptions']
}

async function streamCall<I extends DescMessage, O extends DescMessage>(
  peer: TransportPeer,
  method: DescMethodStreaming<I, O>,
  req: StreamRequest<I, O>,
  timeoutMs: number | undefined,
  settings: StreamSettings,
): Promise<StreamResponse<I, O>> {
  const serialization = createMethodSerializationLookup(method, settings.binaryOptions, undefined, settings)
  const [input, output] = [serialization.getI(true), serialization.getO(true)]
  const done = peer.begin()
  try {
    const found = await peer.connect()
    req.signal.throwIfAborted()
    const flow = new Flow(found.link, 'opener')
    const number = methodNumber(found, method)
    const open = encodeFrame(req.header, undefined)
    flow.id = found.link.open(flow, found.service, number, wireTimeout(timeoutMs), 0, open)
    const cancel = (): void =>
      flow.cancel(reasonOf(req.signal), rpcError('ERR_RPC_CANCELLED', 'the call was aborted'))
    req.signal.addEventListener('abort', cancel, { once: true })
    void sendAll(flow, req.message, input.serialize).catch(error => {
      // The call has failed, or the program's iterable has: the reader of the results is told.
      if (flow.error === undefined)
        flow.cancel(CANCELLED, rpcError('ERR_RPC_CANCELLED', String(error), { cause: error }))
    })
    const first = await flow.next()
    const { header } = decodeFrame(first?.bytes ?? Buffer.alloc(0))
    const trailer = new Headers()
    const over = (): void => {
      req.signal.removeEventListener('abort', cancel)
      done()
    }
    return {
      stream: true,
      service: method.parent,
      method,
      header,
      trailer,
      message: receiveAll(flow, output.parse, trailer, over),
    }
  } catch (error) {
    done()
    throw toConnectError(error)
  }
}

async function sendAll<T>(
  flow: Flow,
  messages: AsyncIterable<T>,
  serialize: (message: T) => Uint8Array,
): Promise<void> {
  for await (const message of messages) {
    if (!flow.maySend) await flow.ready()
    if (flow.error !== undefined) return
    flow.send(serialize(message))
  }
  flow.end()
}

async function* receiveAll<O extends DescMessage>(
  flow: Flow,
  parse: (bytes: Uint8Array) => MessageShape<O>,
  trailer: Headers,
  over: () => void,
): AsyncGenerator<MessageShape<O>> {
  try {
    for (;;) {
      const item = await flow.next()
      if (item === undefined) throw new ConnectError('the stream has ended without trailers', Code.Internal)
      if (!flow.hasTakenLast) {
        yield parse(item.bytes)
        continue
      }
      for (const [name, value] of decodeFrame(item.bytes).trailer) trailer.append(name, value)
      return
    }
  } catch (error) {
    throw toConnectError(error)
  } finally {
    flow.cancel(CANCELLED, rpcError('ERR_RPC_CANCELLED', 'the stream was left'))
    over()
  }
}

function requestOf<I extends DescMessage, O extends DescMessage>(
  method: { readonly parent: DescMethodStreaming<I, O>['parent'] } & Parameters<typeof createMethodUrl>[1],
  header: ConstructorParameters<typeof Headers>[0],
) {
  return {
    service: method.parent,
    requestMethod: 'POST',
    url: createMethodUrl(BASE_URL, method),
    header: new Headers(header),
  }
}

function methodNumber({ methods, link }: Found, method: Parameters<typeof signatureOf>[0]): number {
  const number = methods.get(signatureOf(method))
  if (number !== undefined) return number
  throw new ConnectError(`${link.peerName} does not serve ${signatureOf(method)}`, Code.Unimplemented)
}

/** Connect's deadlines abort the signal of a call, too. */
function reasonOf({ reason }: AbortSignal): typeof CANCELLED | typeof DEADLINE {
  return ConnectError.from(reason).code === Code.DeadlineExceeded ? DEADLINE : CANCELLED
}

/** 0 on the wire means none. */
function wireTimeout(timeoutMs: number | undefined): number {
  return timeoutMs === undefined ? 0 : Math.min(0x7fffffff, Math.max(1, Math.ceil(timeoutMs)))
}

/** The serving endpoint, and this side's own if the program has given none. */
class TransportPeer {
  readonly #options: FastTransportOptions
  #endpoint: Endpoint | undefined
  #service: RemoteService | undefined
  #opening: Promise<RemoteService> | undefined
  #underWay = 0

  constructor(options: FastTransportOptions) {
    const { to, endpoint } = options
    if (typeof to !== 'string' && endpoint === undefined) {
      throw rpcError('ERR_RPC_ARGUMENT', 'a destination needs the endpoint that has mapped it')
    }
    this.#options = options
  }

  async connect(): Promise<Found> {
    this.#opening ??= this.#open()
    return await (this.#service ?? (await this.#opening)).connect()
  }

  /** Runs one call. */
  async use<T>(call: (found: Found) => Promise<T>): Promise<T> {
    const done = this.begin()
    try {
      return await call(await this.connect())
    } catch (error) {
      throw toConnectError(error)
    } finally {
      done()
    }
  }

  /** A call begins; the returned function ends it. */
  begin(): () => void {
    if (this.#underWay++ === 0) this.#endpoint?.ref()
    let isDone = false
    return () => {
      if (isDone) return
      isDone = true
      if (--this.#underWay === 0) this.#endpoint?.unref()
    }
  }

  async #open(): Promise<RemoteService> {
    const { endpoint, to, tag } = this.#options
    if (endpoint === undefined) this.#endpoint = await openEndpoint()
    const own = endpoint ?? (this.#endpoint as Endpoint)
    this.#service = new RemoteService(own, to, SERVICE_NAME, tag, () => {})
    return this.#service
  }
}
