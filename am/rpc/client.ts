/** The calling side of a service. */
import { type Clock, nextTurnOf } from '../../nic/clock.ts'
import type { WaitOptions } from '../call.ts'
import type { Endpoint } from '../endpoint.ts'
import { Links } from './links.ts'
import { Peers } from './peers.ts'
import type { PeerEvent, RemoteService } from './remote-service.ts'
import { rpcError } from './rpc-error.ts'
import { RpcStream } from './rpc-stream.ts'
import { type Method, type MethodSpec, type Methods, type Service, type Stream, specsOf } from './service.ts'

/** Names or destinations; or a prefix of published names, which is watched: `'services/printer/*'`. */
export type Destinations = readonly (string | number)[] | string

/** A name, a destination that the program has mapped, one of several peers for each call, or each of them. */
export type To = string | number | { readonly any: Destinations } | { readonly each: Destinations }

export interface ConnectOptions {
  /** Which of several peers has the next call: in turn (the default), or the one with the fewest calls under way. */
  readonly choose?: 'in-turn' | 'fewest-under-way'
  /** The tag of the peers; by default the one that they have published. */
  readonly tag?: bigint
  /** Called when a peer goes up or down. */
  readonly onPeer?: (event: PeerEvent) => void
}

/** Of one peer, for a call to each. */
export type Settled<T> =
  | { readonly peer: string | number; readonly status: 'fulfilled'; readonly value: T }
  | { readonly peer: string | number; readonly status: 'rejected'; readonly reason: Error }

export type Client<M extends Methods> = {
  readonly [K in keyof M]: M[K] extends Method<infer Input, infer Output>
    ? (input: Input, options?: WaitOptions) => Promise<Output>
    : M[K] extends Stream<infer Input, infer Output>
      ? (input: Input, options?: WaitOptions) => RpcStream<Output>
      : never
} & AsyncDisposable

export type EachClient<M extends Methods> = {
  readonly [K in keyof M]: M[K] extends Method<infer Input, infer Output>
    ? (input: Input, options?: WaitOptions) => Promise<Settled<Output>[]>
    : never
} & AsyncDisposable

/**
 * A client of the service at `to`. Resolves when its peer is connected; with several, when one is, and
 * with `each: [...]` when all are that can be. A lost peer is connected anew:
 * at the next call, or in the background where there are several. No call is repeated: it may have been handled.
 */
export function connectService<M extends Methods>(
  endpoint: Endpoint,
  to: { readonly each: Destinations },
  service: Service<M>,
  options?: ConnectOptions,
): Promise<EachClient<M>>
export function connectService<M extends Methods>(
  endpoint: Endpoint,
  to: To,
  service: Service<M>,
  options?: ConnectOptions,
): Promise<Client<M>>
export async function connectService<M extends Methods>(
  endpoint: Endpoint,
  to: To,
  service: Service<M>,
  options: ConnectOptions = {},
): Promise<Client<M> | EachClient<M>> {
  const { choose = 'in-turn', tag, onPeer } = options
  if (choose !== 'in-turn' && choose !== 'fewest-under-way') {
    throw rpcError(
      'ERR_RPC_ARGUMENT',
      `choose must be 'in-turn' or 'fewest-under-way', not ${String(choose)}`,
    )
  }
  const isEach = typeof to === 'object' && 'each' in to
  const wanted = typeof to !== 'object' ? [to] : isEach ? to.each : to.any
  const peers = new Peers(endpoint, service, { choose, tag, onPeer, isAlone: typeof to !== 'object', isEach })
  try {
    await peers.begin(wanted)
  } catch (error) {
    peers.close()
    throw error
  }
  const client: Record<PropertyKey, unknown> = { [Symbol.asyncDispose]: async () => peers.close() }
  const { clock } = Links.of(endpoint)
  for (const method of specsOf(service)) {
    const { key } = method
    if (method.kind === 'stream') client[key] = streamOf(peers, method, clock)
    else if (isEach)
      client[key] = (input: unknown, wait?: WaitOptions) => callEach(peers.up(), method, input, wait)
    else client[key] = (input: unknown, wait?: WaitOptions) => callOne(peers, method, clock, input, wait)
  }
  return client as Client<M> | EachClient<M>
}

/** Ends a client: its calls under way are lost. The endpoint stays. */
export async function disconnect(client: AsyncDisposable): Promise<void> {
  await client[Symbol.asyncDispose]()
}

function callOne(
  peers: Peers,
  method: MethodSpec,
  clock: Clock,
  input: unknown,
  options?: WaitOptions,
): Promise<unknown> {
  try {
    return peers.choose().call(method, input, options)
  } catch (error) {
    return refuseLater(clock, error)
  }
}

/** In the next turn: a program that calls again at once would keep the event loop from the peers, and none would ever be up. */
async function refuseLater(clock: Clock, error: unknown): Promise<never> {
  await nextTurnOf(clock)
  throw error
}

function streamOf(peers: Peers, method: MethodSpec, clock: Clock) {
  return (input: unknown, options: WaitOptions = {}): RpcStream<unknown> => {
    const open = async () => {
      try {
        return await peers.choose().stream(method, input, options)
      } catch (error) {
        return await refuseLater(clock, error)
      }
    }
    return new RpcStream(open(), method.output, clock, options)
  }
}

async function callEach(
  peers: readonly RemoteService[],
  method: MethodSpec,
  input: unknown,
  options?: WaitOptions,
): Promise<Settled<unknown>[]> {
  const results = await Promise.allSettled(peers.map(peer => peer.call(method, input, options)))
  return results.map((result, i) => ({ peer: (peers[i] as RemoteService).peer, ...result }))
}
