/** What a service is: names of methods, with their types and codecs. Both sides import one definition. */
import type { Observable } from 'rxjs'
import type { Codec } from './codec.ts'
import { v8Codec } from './codec.ts'
import { rpcError } from './rpc-error.ts'

export interface MethodCodecs<Input, Output> {
  /** Instead of the service's codec. */
  readonly input?: Codec<Input> | Codec
  readonly output?: Codec<Output> | Codec
}

declare const types: unique symbol

/** One value in, one value out. */
export interface Method<Input, Output> extends MethodCodecs<Input, Output> {
  readonly kind: 'method'
  readonly [types]?: (input: Input) => Output
}

/** One value in, a stream of values out. */
export interface Stream<Input, Output> extends MethodCodecs<Input, Output> {
  readonly kind: 'stream'
  readonly [types]?: (input: Input) => Output
}

// biome-ignore lint/suspicious/noExplicitAny: the bound of a type parameter; inference replaces it
export type Methods = Readonly<Record<string, Method<any, any> | Stream<any, any>>>

export interface Service<M extends Methods = Methods> {
  /** Tells services of one endpoint apart; by default the empty name. */
  readonly name: string
  readonly codec: Codec
  readonly methods: M
}

/** About the call that a handler answers. */
export interface CallContext {
  /** Aborted when the caller cancels, its time is over, or its process ends. Made on first use. */
  readonly signal: AbortSignal
  /** Name of the calling endpoint. */
  readonly source: string
  /** The caller waits this long in all; undefined: for ever. */
  readonly timeoutMs: number | undefined
}

/** A stream ends with its iterable, or when the observable completes. */
export type Items<T> = AsyncIterable<T> | Iterable<T> | Observable<T>

export type Handlers<M extends Methods> = {
  readonly [K in keyof M]: M[K] extends Method<infer Input, infer Output>
    ? (input: Input, context: CallContext) => Output | Promise<Output>
    : M[K] extends Stream<infer Input, infer Output>
      ? (input: Input, context: CallContext) => Items<Output> | Promise<Items<Output>>
      : never
}

export function method(): Method<void, void>
export function method<Input, Output>(codecs?: MethodCodecs<Input, Output>): Method<Input, Output>
export function method<Input, Output>(codecs: MethodCodecs<Input, Output> = {}): Method<Input, Output> {
  return { ...codecs, kind: 'method' }
}

export function stream<Input, Output>(codecs: MethodCodecs<Input, Output> = {}): Stream<Input, Output> {
  return { ...codecs, kind: 'stream' }
}

export interface ServiceOptions {
  readonly name?: string
  /** For all values of the service; `v8Codec` by default. */
  readonly codec?: Codec
}

/** Describes a service, for `serve` and `connectService`. */
export function defineService<M extends Methods>(methods: M, options: ServiceOptions = {}): Service<M> {
  const { name = '', codec = v8Codec } = options
  if (typeof name !== 'string' || name.includes(' ')) {
    throw rpcError(
      'ERR_RPC_ARGUMENT',
      `the name of a service must be a string without spaces, not ${String(name)}`,
    )
  }
  for (const [key, { kind }] of Object.entries(methods)) {
    if (kind !== 'method' && kind !== 'stream') {
      throw rpcError('ERR_RPC_ARGUMENT', `${key} must be method() or stream()`)
    }
  }
  return { name, codec, methods }
}

/** A method of a service with its own codecs. */
export interface MethodSpec {
  readonly key: string
  readonly kind: 'method' | 'stream'
  readonly input: Codec
  readonly output: Codec
  /**
   * The name that the directory knows the method by: with its kind and codecs, so that two sides that disagree find this out
   * when they call, and not by bytes that cannot be read.
   */
  readonly signature: string
}

export function specsOf({ codec, methods }: Service): MethodSpec[] {
  return Object.entries(methods).map(([key, { kind, input = codec, output = codec }]) => {
    return { key, kind, input, output, signature: `${key} ${kind} ${input.name} ${output.name}` }
  })
}
