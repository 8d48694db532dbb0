/**
 * etcd v3 as JSON over HTTP, by the gateway that every etcd has at /v3. Keys and values are base64, 64-bit numbers are
 * text. Members are tried in turn, beginning with the one that answered last.
 */
import { Agent, type IncomingMessage, type RequestOptions, request } from 'node:http'
import { Agent as TlsAgent, request as tlsRequest } from 'node:https'
import type { Socket } from 'node:net'

/** How long etcd may be silent until its answer is complete. */
const TIMEOUT_MS = 2000
/** Size of all names of the largest store in one answer. */
const ANSWER_SIZE_MAX = 256 * 1024 * 1024
const SOCKETS_MAX = 64
/** gRPC's codes, as the gateway reports them. */
const NOT_FOUND = 5
const UNAUTHENTICATED = 16
/** "Permission denied", "resource exhausted" (its disk quota, perhaps), "data loss". */
const NO_CHANGES: readonly number[] = [7, 8, 15]
const ENDED: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE'])

export interface EtcdOptions {
  readonly endpoints: readonly string[]
  readonly ca?: string
  readonly certificate?: string
  readonly key?: string
  readonly user?: string
  readonly password?: string
}

export interface EtcdKeyValue {
  readonly key: string
  readonly value: string
  readonly revision: number
  /** 0 if it has none. */
  readonly lease: bigint
}

export interface EtcdCompare {
  readonly key: string
  /** Revision of the last change; 0 if the key must not exist. */
  readonly revision?: number
  /** Or: the key must exist, with any value. */
  readonly exists?: true
}

export type EtcdOperation =
  | { readonly put: string; readonly value: string; readonly lease: bigint }
  | { readonly delete: string }

export interface EtcdChange extends Omit<EtcdKeyValue, 'value'> {
  /** Undefined if it was deleted. */
  readonly value: string | undefined
}

export interface EtcdOutcome {
  readonly succeeded: boolean
  readonly revision: number
  readonly found: EtcdKeyValue | undefined
}

export interface EtcdWatchListener {
  /** In order; changes of one revision come together. */
  handleChanges(changes: readonly EtcdChange[]): void
  /** The history before `revision` has been compacted. */
  handleCompacted(revision: number): void
  handleEnd(): void
}

/** etcd has refused; `grpcCode` says why. Every other failure means that it is unreachable. */
export class EtcdError extends Error {
  readonly grpcCode: number

  constructor(grpcCode: number) {
    super(`etcd refused: gRPC code ${grpcCode}`)
    this.name = 'EtcdError'
    this.grpcCode = grpcCode
  }

  get isNotFound(): boolean {
    return this.grpcCode === NOT_FOUND
  }

  /** True if it would refuse every change. */
  get isOfAllChanges(): boolean {
    return NO_CHANGES.includes(this.grpcCode)
  }
}

/** A kept connection had ended when it was used again: no statement about the member. */
class StaleConnectionError extends Error {
  constructor(cause: Error) {
    super('the connection had ended', { cause })
    this.name = 'StaleConnectionError'
  }
}

/** No connection was made: the request cannot have been performed. */
class UnsentError extends Error {
  constructor(cause: Error) {
    super('there was no connection', { cause })
    this.name = 'UnsentError'
  }
}

/** The failure in words for an operator, without contents of etcd. */
export function reasonOf(error: unknown): string {
  const { cause, code, name, message } = error as NodeJS.ErrnoException
  if (cause !== undefined) return reasonOf(cause)
  // JSON.parse's message contains a piece of the text.
  return code ?? (name === 'SyntaxError' ? 'the answer is not JSON' : message)
}

interface Header {
  readonly revision?: string
}

interface WireKeyValue {
  readonly key: string
  readonly value?: string
  readonly mod_revision: string
  readonly lease?: string
}

interface TransactAnswer {
  readonly header: Header
  readonly succeeded?: boolean
  readonly responses?: readonly { readonly response_range?: { readonly kvs?: readonly WireKeyValue[] } }[]
}

interface WatchAnswer {
  readonly result?: {
    readonly canceled?: boolean
    readonly compact_revision?: string
    readonly events?: readonly { readonly type?: string; readonly kv: WireKeyValue }[]
  }
}

export class EtcdGateway {
  readonly #options: EtcdOptions
  readonly #agents: readonly Agent[]
  readonly #urls: readonly URL[]
  #current = 0
  /** Functions that end the open watches. */
  readonly #watches = new Set<() => void>()
  #token: string | undefined

  constructor(options: EtcdOptions) {
    const { endpoints, ca, certificate, key } = options
    this.#options = options
    this.#urls = endpoints.map(endpoint => new URL(endpoint))
    const tls = {
      ...(ca === undefined ? {} : { ca }),
      ...(certificate === undefined ? {} : { cert: certificate }),
      ...(key === undefined ? {} : { key }),
    }
    const common = { keepAlive: true, maxSockets: SOCKETS_MAX }
    this.#agents = this.#urls.map(({ protocol }) =>
      protocol === 'https:' ? new TlsAgent({ ...common, ...tls }) : new Agent(common),
    )
  }

  /** All keys that begin with `prefix`, in order, as of `revision`. */
  async range(prefix: string, revision: number): Promise<EtcdKeyValue[]> {
    const { kvs = [] } = await this.#ask<{ kvs?: WireKeyValue[] }>('kv/range', {
      key: encode(prefix),
      range_end: encodeEnd(prefix),
      revision: String(revision),
    })
    return kvs.map(decodePair)
  }

  async get(key: string): Promise<EtcdKeyValue | undefined> {
    const { kvs = [] } = await this.#ask<{ kvs?: WireKeyValue[] }>('kv/range', { key: encode(key) })
    return kvs[0] && decodePair(kvs[0])
  }

  /**
   * All of it if every comparison holds, else nothing: then `found` is the state of the first key. `isHarmlessTwice`:
   * may be sent again if no answer says whether it was performed.
   */
  async transact(
    compare: readonly EtcdCompare[],
    operations: readonly EtcdOperation[],
    isHarmlessTwice = false,
  ): Promise<EtcdOutcome> {
    const [first] = compare
    const body = {
      compare: compare.map(encodeCompare),
      success: operations.map(encodeOperation),
      failure: first === undefined ? [] : [{ request_range: { key: encode(first.key) } }],
    }
    const { header, succeeded, responses } = await this.#ask<TransactAnswer>('kv/txn', body, isHarmlessTwice)
    if (succeeded === true) return { succeeded, revision: Number(header.revision), found: undefined }
    const pair = responses?.[0]?.response_range?.kvs?.[0]
    return { succeeded: false, revision: Number(header.revision), found: pair && decodePair(pair) }
  }

  /** etcd may grant more than was asked for. */
  async grant(ttlS: number): Promise<{ id: bigint; ttlS: number }> {
    const { ID, TTL } = await this.#ask<{ ID: string; TTL: string }>(
      'lease/grant',
      { TTL: String(ttlS) },
      false,
    )
    return { id: BigInt(ID), ttlS: Number(TTL) }
  }

  /** False if the lease has ended. */
  async keepAlive(id: bigint): Promise<boolean> {
    const { result } = await this.#ask<{ result?: { TTL?: string } }>('lease/keepalive', { ID: String(id) })
    return Number(result?.TTL ?? 0) > 0
  }

  /** Throws an `EtcdError` that is "not found" if the lease has ended. */
  async revoke(id: bigint): Promise<void> {
    await this.#ask('lease/revoke', { ID: String(id) }, false)
  }

  /** Changes of keys that begin with `prefix`, from `revision` on. Returns the function that ends the watch. */
  watch(prefix: string, revision: number, listener: EtcdWatchListener): () => void {
    const body = {
      create_request: {
        key: encode(prefix),
        range_end: encodeEnd(prefix),
        start_revision: String(revision),
        progress_notify: true,
      },
    }
    let isEnded = false
    const end = (): void => {
      if (isEnded) return
      stop()
      listener.handleEnd()
    }
    const stop = (): void => {
      isEnded = true
      this.#watches.delete(end)
      call.destroy()
    }
    const call = this.#request(
      'watch',
      JSON.stringify(body),
      response => {
        this.#readWatch(response, listener)
          .catch(() => {})
          .finally(end)
      },
      true,
    )
    call.once('error', end)
    this.#watches.add(end)
    return stop
  }

  close(): void {
    for (const agent of this.#agents) agent.destroy()
  }

  async #readWatch(response: IncomingMessage, listener: EtcdWatchListener): Promise<void> {
    for await (const line of linesOf(response)) handleWatchAnswer(JSON.parse(line) as WatchAnswer, listener)
  }

  /**
   * Asks each member once at most, and again if the token has expired or a kept connection had ended. A request that is
   * not harmless twice goes to the next member only if this one cannot have performed it.
   */
  async #ask<T>(path: string, body: object, isHarmlessTwice = true): Promise<T> {
    let failed = 0
    for (let tried = 1; ; tried++) {
      const asked = this.#current
      let isSent = false
      try {
        if (this.#options.user !== undefined && this.#token === undefined) await this.#authenticate()
        isSent = true
        return await this.#askOnce<T>(path, body)
      } catch (error) {
        if (tried > this.#urls.length) throw error
        if (error instanceof StaleConnectionError) continue
        if (error instanceof EtcdError) {
          if (error.grpcCode !== UNAUTHENTICATED || this.#token === undefined) throw error
          this.#token = undefined
          continue
        }
        failed += 1
        this.#leave(asked)
        const mayBeDone = isSent && !(error instanceof UnsentError)
        if (failed >= this.#urls.length || (mayBeDone && !isHarmlessTwice)) throw error
      }
    }
  }

  /** Moves to the next member, unless another caller has. Watches move too: this member may hang without ending them. */
  #leave(member: number): void {
    if (this.#current !== member || this.#urls.length === 1) return
    this.#current = (member + 1) % this.#urls.length
    for (const end of this.#watches) end()
  }

  async #authenticate(): Promise<void> {
    const { user: name, password } = this.#options
    const { token } = await this.#askOnce<{ token: string }>('auth/authenticate', { name, password })
    this.#token = token
  }

  #askOnce<T>(path: string, body: object): Promise<T> {
    return new Promise((resolve, reject) => {
      const call = this.#request(
        path,
        JSON.stringify(body),
        response => {
          readText(response, () => timer.refresh())
            .then(text => resolve(parseAnswer<T>(response.statusCode, text)))
            .catch(reject)
            .finally(() => clearTimeout(timer))
        },
        false,
      )
      const timer = setTimeout(() => call.destroy(new Error('etcd did not answer in time')), TIMEOUT_MS)
      let isConnected = false
      call.once('socket', (socket: Socket) => {
        if (call.reusedSocket || !socket.connecting) isConnected = true
        else socket.once('encrypted' in socket ? 'secureConnect' : 'connect', () => (isConnected = true))
      })
      call.once('error', (error: NodeJS.ErrnoException) => {
        clearTimeout(timer)
        const isStale = call.reusedSocket && ENDED.has(error.code ?? '')
        if (isStale) reject(new StaleConnectionError(error))
        else reject(isConnected ? error : new UnsentError(error))
      })
    })
  }

  #request(path: string, body: string, listener: (response: IncomingMessage) => void, isStream: boolean) {
    const url = this.#urls[this.#current] as URL
    const ask = url.protocol === 'https:' ? tlsRequest : request
    const agent = this.#agents[this.#current] as Agent
    const options: RequestOptions = {
      method: 'POST',
      host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
      port: url.port,
      path: `${url.pathname.replace(/\/$/, '')}/v3/${path}`,
      agent,
      headers: {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
        ...(this.#token === undefined || path === 'auth/authenticate' ? {} : { authorization: this.#token }),
      },
    }
    const call = ask(options, listener)
    if (isStream) call.setSocketKeepAlive(true, TIMEOUT_MS)
    call.end(body)
    return call
  }
}

function handleWatchAnswer({ result }: WatchAnswer, listener: EtcdWatchListener): void {
  if (result === undefined) throw new Error('etcd ended the watch')
  const { canceled, compact_revision, events = [] } = result
  if (compact_revision !== undefined) return listener.handleCompacted(Number(compact_revision))
  if (canceled) throw new Error('etcd cancelled the watch')
  if (events.length > 0) listener.handleChanges(events.map(({ type, kv }) => decodeChange(type, kv)))
}

function decodeChange(type: string | undefined, wire: WireKeyValue): EtcdChange {
  const pair = decodePair(wire)
  return { ...pair, value: type === 'DELETE' ? undefined : pair.value }
}

function encodeCompare({ key, revision, exists }: EtcdCompare): object {
  return exists === true
    ? { key: encode(key), target: 'CREATE', result: 'GREATER', create_revision: '0' }
    : { key: encode(key), target: 'MOD', result: 'EQUAL', mod_revision: String(revision) }
}

function encodeOperation(operation: EtcdOperation): object {
  if ('delete' in operation) return { request_delete_range: { key: encode(operation.delete) } }
  const { put, value, lease } = operation
  return { request_put: { key: encode(put), value: encode(value), lease: String(lease) } }
}

/** All lines but empty ones. A line may have a thousand changes; it is joined only once. */
async function* linesOf(response: IncomingMessage): AsyncGenerator<string> {
  response.setEncoding('utf8')
  let pieces: string[] = []
  let length = 0
  for await (const text of response as AsyncIterable<string>) {
    const [piece = '', ...rest] = text.split('\n')
    pieces.push(piece)
    length += piece.length
    if (length > ANSWER_SIZE_MAX) throw new Error('the answer is too long')
    if (rest.length === 0) continue
    const last = rest.pop() as string
    for (const line of [pieces.join(''), ...rest]) if (line !== '') yield line
    pieces = [last]
    length = last.length
  }
}

/** `handleChunk` is called with each piece of it. */
async function readText(response: IncomingMessage, handleChunk: () => void): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    handleChunk()
    size += chunk.length
    if (size > ANSWER_SIZE_MAX) throw new Error('the answer is too long')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function parseAnswer<T>(status: number | undefined, text: string): T {
  if (status === 200) return JSON.parse(text) as T
  const { code } = JSON.parse(text) as { code?: number }
  // "Unavailable", "deadline exceeded" and similar codes are a member without its cluster, not a refusal.
  if (code === undefined) throw new Error(`etcd answers ${status}`)
  if ([1, 2, 4, 14].includes(code)) throw new Error(`etcd is not available: gRPC code ${code}`)
  throw new EtcdError(code)
}

function decodePair({ key, value = '', mod_revision, lease = '0' }: WireKeyValue): EtcdKeyValue {
  return { key: decode(key), value: decode(value), revision: Number(mod_revision), lease: BigInt(lease) }
}

function encode(text: string): string {
  return Buffer.from(text).toString('base64')
}

function decode(base64: string): string {
  return Buffer.from(base64, 'base64').toString('utf8')
}

/** The first key after all that begin with `prefix`, which is ASCII. */
function encodeEnd(prefix: string): string {
  const bytes = Buffer.from(prefix)
  bytes[bytes.length - 1] = (bytes.at(-1) as number) + 1
  return bytes.toString('base64')
}
