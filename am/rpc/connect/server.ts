/** The serving side of Connect: takes the routes that a program has for HTTP. */
import type { DescMessage } from '@bufbuild/protobuf'
import {
  Code,
  ConnectError,
  type ConnectRouter,
  type ContextValues,
  createHandlerContext,
  createMethodImplSpec,
  createServiceImplSpec,
  type HandlerContext,
  type MethodImplSpec,
} from '@connectrpc/connect'
import {
  createMethodSerializationLookup,
  createMethodUrl,
  invokeUnaryImplementation,
  type MethodSerializationLookup,
  transformInvokeImplementation,
} from '@connectrpc/connect/protocol'
import { queueMicrotask, setImmediate } from '../../../nic/real-time.ts'
import type { Endpoint } from '../../endpoint.ts'
import { cancelError, Flow } from '../flow.ts'
import type { Link, LinkCall, Opened } from '../link.ts'
import { Links } from '../links.ts'
import type { RpcError } from '../rpc-error.ts'
import { decodeFrame, encodeFrame, type Head, toConnectError, toWireError } from './frames.ts'
import { limitsOf, SERVICE_NAME, type SharedOptions, signatureOf } from './limits.ts'

const BASE_URL = 'https://fastsockets'
const NO_SLOT = -1
const PROTOCOL = 'fastsockets'

export interface ServeConnectOptions extends SharedOptions {
  /** Values for the handlers of one call, made from the caller's endpoint name. */
  readonly contextValues?: (source: string) => ContextValues
  /** Longest deadline that a caller may ask for. */
  readonly maxTimeoutMs?: number
}

/**
 * Serves Connect's services to all peers of the endpoint. `routes` is the function that `connectNodeAdapter` takes. The returned
 * object's `close()` serves no further calls.
 */
export function serveConnect(
  endpoint: Endpoint,
  routes: (router: ConnectRouter) => unknown,
  options: ServeConnectOptions = {},
): { close(): void } {
  const specs: MethodImplSpec[] = []
  const router = {
    handlers: [],
    service: (...given: Parameters<ConnectRouter['service']>) => {
      specs.push(...Object.values(createServiceImplSpec(given[0], given[1]).methods))
      return router
    },
    rpc: (...given: Parameters<ConnectRouter['rpc']>) => {
      specs.push(createMethodImplSpec(given[0], given[1]))
      return router
    },
  }
  routes(router as unknown as ConnectRouter)
  const limits = limitsOf(options)
  const methods = specs.map(spec => ({
    spec,
    serialization: createMethodSerializationLookup<DescMessage, DescMessage>(
      spec.method,
      options.binaryOptions,
      undefined,
      limits,
    ),
  }))
  const close = Links.of(endpoint).serve({
    name: SERVICE_NAME,
    methods: specs.map(({ method }) => signatureOf(method)),
    accept: opened => {
      const { spec, serialization } = methods[opened.method] as (typeof methods)[number]
      return spec.kind === 'unary'
        ? serveUnary(opened, spec, serialization, options)
        : serveStream(opened, spec, serialization, options)
    },
  })
  return { close }
}

type Serialization = MethodSerializationLookup<DescMessage, DescMessage>
type UnarySpec = MethodImplSpec & { readonly kind: 'unary' }
type StreamSpec = Exclude<MethodImplSpec, { readonly kind: 'unary' }>

/** A call's context and what stops it. */
class Running {
  readonly context: ReturnType<typeof createHandlerContext>
  readonly #stop = new AbortController()

  constructor(
    { link, timeoutMs }: Opened,
    { method }: MethodImplSpec,
    requestHeader: Headers,
    options: ServeConnectOptions,
  ) {
    const { maxTimeoutMs, contextValues } = options
    const waitMs = timeoutMs > 0 ? timeoutMs : undefined
    if (waitMs !== undefined && maxTimeoutMs !== undefined && waitMs > maxTimeoutMs) {
      throw new ConnectError(`timeout ${waitMs}ms must be <= ${maxTimeoutMs}`, Code.InvalidArgument)
    }
    this.context = createHandlerContext({
      service: method.parent,
      method,
      protocolName: PROTOCOL,
      requestMethod: 'POST',
      url: createMethodUrl(BASE_URL, method),
      requestSignal: this.#stop.signal,
      requestHeader,
      ...(waitMs !== undefined && { timeoutMs: waitMs }),
      ...(contextValues && { contextValues: contextValues(link.peerName) }),
    })
  }

  stop(error: RpcError): void {
    this.#stop.abort(toConnectError(error))
  }
}

function serveUnary(
  opened: Opened,
  spec: UnarySpec,
  serialization: Serialization,
  options: ServeConnectOptions,
): LinkCall {
  const { link, id } = opened
  let { slot } = opened
  const takeSlot = (): number => {
    const taken = slot
    slot = NO_SLOT
    return taken
  }
  let running: Running | undefined
  let isStopped = false
  const answer = async (): Promise<void> => {
    try {
      const { header, message } = decodeFrame(opened.bytes)
      running = new Running(opened, spec, header, options)
      const { context } = running
      const input = serialization.getI(true).parse(message)
      const output = await invokeUnaryImplementation(spec, context, input, options.interceptors ?? [])
      if (isStopped) return
      const bytes = serialization.getO(true).serialize(output)
      link.answer(takeSlot(), id, encodeFrame(context.responseHeader, context.responseTrailer, bytes))
      context.abort()
    } catch (reason) {
      link.release(takeSlot())
      sendFailure(link, id, reason, running?.context, isStopped)
    } finally {
      link.forget(id, 0)
    }
  }
  queueMicrotask(() => {
    if (!isStopped) void answer()
    // As for services: a handler without a result by the next turn holds no credit.
    setImmediate(() => link.release(takeSlot()))
  })
  const stop = (error: RpcError): void => {
    isStopped = true
    link.forget(id, 0)
    queueMicrotask(() => running?.stop(error))
  }
  return {
    handleData: () => {},
    handleCredit: () => {},
    handleCancel: reason => stop(cancelError(reason)),
    handleLost: stop,
  }
}

function sendFailure(
  link: Link,
  id: number,
  reason: unknown,
  context: Running['context'] | undefined,
  isStopped: boolean,
): void {
  context?.abort(reason)
  if (!isStopped) link.sendError(id, 0, toWireError(reason, headOf(context)))
}

function headOf(context: HandlerContext | undefined): Head {
  return {
    header: context?.responseHeader ?? new Headers(),
    trailer: context?.responseTrailer ?? new Headers(),
  }
}

function serveStream(
  opened: Opened,
  spec: StreamSpec,
  serialization: Serialization,
  options: ServeConnectOptions,
): LinkCall {
  opened.link.release(opened.slot)
  const flow = new Flow(opened.link, 'acceptor')
  flow.id = opened.id
  let running: Running | undefined
  flow.onStop = error => running?.stop(error)
  const answer = async (): Promise<void> => {
    let isBegun = false
    try {
      running = new Running(opened, spec, decodeFrame(opened.bytes).header, options)
      const { context } = running
      const inputs = receiveAll(flow, serialization.getI(true).parse)
      const outputs = transformInvokeImplementation(spec, context, options.interceptors ?? [])(inputs)
      const serialize = serialization.getO(true).serialize
      for await (const output of outputs) {
        // Headers are complete when the first message is there.
        if (!isBegun) flow.send(encodeFrame(context.responseHeader, undefined))
        isBegun = true
        if (!flow.maySend) await flow.ready()
        if (flow.error !== undefined) throw flow.error
        flow.send(serialize(output))
      }
      if (!isBegun) flow.send(encodeFrame(context.responseHeader, undefined))
      flow.end(encodeFrame(new Headers(), context.responseTrailer))
      context.abort()
    } catch (reason) {
      running?.context.abort(reason)
      const { header, trailer } = headOf(running?.context)
      if (!isBegun && flow.error === undefined) flow.send(encodeFrame(header, undefined))
      flow.fail(toWireError(reason, { header: isBegun ? new Headers() : header, trailer }))
    } finally {
      flow.discard()
    }
  }
  queueMicrotask(() => void answer())
  return flow
}

async function* receiveAll(flow: Flow, parse: (bytes: Uint8Array) => unknown): AsyncGenerator<never> {
  try {
    for (let item = await flow.next(); item !== undefined; item = await flow.next())
      yield parse(item.bytes) as never
  } catch (error) {
    throw toConnectError(error)
  }
}
