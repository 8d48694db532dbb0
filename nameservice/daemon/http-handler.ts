/** From a request to an answer: route, caller, rate, form, operation. Each refusal becomes a problem document. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises'
import type makeRouter from 'find-my-way'
import type { FindResult, Instance } from 'find-my-way'
import { type Clock, realClock } from '../../nic/clock.ts'
import { PROBLEM_MEDIA_TYPE, type ProblemCode, Refusal } from '../problem.ts'
import {
  type Answer,
  type Call,
  EVENT_STREAM_TYPE,
  JSON_TYPE,
  type Method,
  type Operation,
  type QuerySchema,
} from './operation.ts'
import { ANONYMOUS, type Principal } from './principal.ts'
import { readJson } from './request-body.ts'
import type { Limits } from './settings-schema.ts'
import { ChangesByOwner } from './shares.ts'
import type { TokenBuckets } from './token-bucket.ts'
import { UnreadAnswers } from './unread-answers.ts'
import { type Check, compile } from './validation.ts'

const METHODS: readonly Method[] = ['GET', 'PUT', 'POST', 'DELETE']
const PARAMETER = /\{\w+\}/
/** Problems after which the daemon closes the connection. */
const ENDING: ReadonlySet<ProblemCode> = new Set(['stopping', 'request-timeout'])
/** A name has up to 200 characters, each percent-encoded as three. */
const TARGET_LENGTH_MAX = 1000
/** Label of a request that did not reach an operation, or of one without a known caller. */
export const NO_OPERATION = 'none'
export const UNKNOWN_CALLER = 'unknown'
const PREPARE_DELAY_MS = 300
const NOTHING: Readonly<Record<string, never>> = {}

interface Checks {
  readonly operation: Operation
  readonly target: Check | undefined
  readonly query: Check
  readonly body: Check | undefined
}

export interface HttpObserver {
  handleAnswer(operation: string, status: number, durationMs: number): void
  handleRefusal(operation: string, refusal: Refusal, caller: string): void
  handleInternalError(operation: string, error: Error): void
}

export interface HttpHandlerOptions {
  readonly operations: readonly Operation[]
  readonly limits: Limits
  readonly buckets: TokenBuckets
  readonly observer: HttpObserver
  readonly freshness: () => Readonly<Record<string, string>>
  readonly isStopping: () => boolean
  /** Of the simulator. */
  readonly clock?: Clock
}

/**
 * Identifies the caller; throws a refusal if that fails. `isOpen`: the operation needs no known caller. `isAgain`:
 * a second check of the same request, which does not count for the rate.
 */
export type Authenticate = (request: IncomingMessage, isOpen: boolean, isAgain: boolean) => Principal

export class HttpHandler {
  readonly #options: HttpHandlerOptions
  readonly #clock: Clock
  readonly #router: Instance<never>
  readonly #checks: Checks[] = []
  readonly #unread = new UnreadAnswers()
  readonly #changes = new ChangesByOwner()

  constructor(options: HttpHandlerOptions) {
    this.#options = options
    this.#clock = options.clock ?? realClock
    // By require: for an import, Node would scan the whole file for its exports.
    const make = createRequire(import.meta.url)('find-my-way') as typeof makeRouter
    this.#router = make({ maxParamLength: TARGET_LENGTH_MAX, onBadUrl: () => {} })
    for (const operation of options.operations) {
      const { method, path, target, query = {}, body } = operation
      const checks: Checks = {
        operation,
        target: target && compile(target),
        query: compile({ type: 'object', additionalProperties: false, properties: query }),
        body: body && compile(body.schema),
      }
      this.#checks.push(checks)
      // The name is the rest of the path, so its slashes need no escape.
      this.#router.on(method, path.replace('{name}', '*').replace(PARAMETER, ':target'), () => {}, checks)
    }
  }

  /**
   * Compiles the schemas before the first requests need them: after a pause, one in each iteration, so that no
   * request waits.
   */
  async prepare(): Promise<void> {
    await delay(PREPARE_DELAY_MS, undefined, { ref: false })
    for (const { target, body } of this.#checks) {
      await nextTurn()
      target?.('')
      body?.(undefined)
    }
  }

  /** Answers synchronously if the operation does; most operations do. */
  handle(request: IncomingMessage, response: ServerResponse, authenticate: Authenticate): void {
    const exchange: Exchange = {
      request,
      response,
      startMs: this.#clock.now(),
      operation: undefined,
      caller: UNKNOWN_CALLER,
    }
    try {
      const answer = this.#begin(exchange, authenticate)
      if (answer instanceof Promise) {
        answer.then(answer => this.#end(exchange, answer)).catch(error => this.#refuse(exchange, error))
      } else this.#end(exchange, answer)
    } catch (error) {
      this.#refuse(exchange, error)
    }
  }

  #begin(exchange: Exchange, authenticate: Authenticate): Answer | undefined | Promise<Answer | undefined> {
    const { request, response, startMs } = exchange
    const match = this.#match(request)
    const operation = match instanceof Refusal ? undefined : match.checks.operation
    exchange.operation = operation
    // Probes are answered even while the daemon stops: it is alive, but not ready.
    if (this.#options.isStopping() && operation?.access !== 'open')
      throw new Refusal('stopping', 'The daemon is stopping.')
    const principal = authenticate(request, operation === undefined || operation.access === 'open', false)
    exchange.caller = principal.owner
    this.#limitRate(principal, startMs)
    checkHost(request)
    if (match instanceof Refusal) return optionsOf(request, match)
    if (match.checks.operation.access !== 'open')
      this.#unread.check(principal.owner, match.checks.operation.isListing === true)
    const { target, query } = formOf(match)
    const operate = (principal: Principal, body: unknown) => {
      const call = { principal, target, query, body, request, response }
      return match.checks.operation.access === 'write'
        ? this.#change(match.checks.operation, call)
        : match.checks.operation.handle(call)
    }
    if (match.checks.body === undefined) return operate(principal, undefined)
    // Authenticate again: the token may have ended, or changed its rights, while the body arrived.
    return this.#body(request, match.checks).then(body => operate(authenticate(request, false, true), body))
  }

  /** Counts changes that wait for the store, by owner. */
  async #change(operation: Operation, call: Call): Promise<Answer | undefined> {
    const { owner } = call.principal
    this.#changes.begin(owner)
    try {
      return await operation.handle(call)
    } finally {
      this.#changes.end(owner)
    }
  }

  /** `answer` is undefined if the operation has answered by itself. */
  #end(exchange: Exchange, answer: Answer | undefined): void {
    const { response, operation, caller } = exchange
    if (answer !== undefined) {
      this.#unread.add(response, caller, answer.text)
      send(response, answer, this.#freshnessOf(operation))
    }
    this.#note(exchange)
  }

  #refuse(exchange: Exchange, error: unknown): void {
    const { response, operation, caller } = exchange
    const { observer } = this.#options
    const id = operation?.id ?? NO_OPERATION
    const refusal = error instanceof Refusal ? error : new Refusal('internal', 'The daemon failed to answer.')
    if (error === refusal) observer.handleRefusal(id, refusal, caller)
    else observer.handleInternalError(id, error as Error)
    sendProblem(response, refusal, this.#freshnessOf(operation))
    this.#note(exchange)
  }

  #note({ response, operation, startMs }: Exchange): void {
    const durationMs = this.#clock.now() - startMs
    this.#options.observer.handleAnswer(operation?.id ?? NO_OPERATION, response.statusCode, durationMs)
  }

  #freshnessOf(operation: Operation | undefined): Readonly<Record<string, string>> {
    return operation?.hasFreshness === true ? this.#options.freshness() : NOTHING
  }

  /** The operation of a request, or a refusal if there is none. */
  #match({ method = '', url = '' }: IncomingMessage): Match | Refusal {
    const found = this.#find(method === 'HEAD' ? 'GET' : method, url)
    if (found?.store === null) return new Refusal('malformed', 'The path cannot be decoded.')
    if (found !== null && !(method === 'HEAD' && isStream(found.store))) {
      const { params, searchParams, store } = found
      return { checks: store, target: params.target ?? params['*'] ?? '', query: searchParams }
    }
    const allowed = this.#allowed(url)
    if (allowed.length === 0) return new Refusal('no-such-resource', 'There is nothing at this path.')
    return new MethodRefusal(allowed)
  }

  #allowed(url: string): string[] {
    if (url === '*') return ['HEAD', ...METHODS, 'OPTIONS']
    const allowed = METHODS.flatMap(method => {
      const store = this.#find(method, url)?.store
      if (store === undefined) return []
      return method === 'GET' && store !== null && !isStream(store) ? ['GET', 'HEAD'] : [method]
    })
    return allowed.length === 0 ? [] : [...allowed, 'OPTIONS']
  }

  /** `store` of the result is null if the path is not well-formed. */
  #find(method: string, url: string) {
    return this.#router.find(method as Method, url) as Found | null
  }

  /** Anonymous callers were counted by their addresses. */
  #limitRate(principal: Principal, nowMs: number): void {
    if (principal === ANONYMOUS) return
    const { owner } = principal
    const waitMs = this.#options.buckets.acquire(owner, nowMs)
    if (waitMs === 0) return
    const { requestsPerSecond } = this.#options.limits
    throw new Refusal('rate', `An owner may make ${requestsPerSecond} requests a second.`, {
      retryAfterMs: waitMs,
    })
  }

  async #body(request: IncomingMessage, { operation, body: check }: Checks): Promise<unknown> {
    const body = await readJson(request, this.#options.limits, this.#clock)
    if (body === undefined && operation.body?.isOptional === true) return undefined
    const mistake = check?.(body)
    if (mistake === undefined) return body
    throw new Refusal(
      'malformed',
      `The request body${mistake.at === '' ? '' : ` at ${mistake.at}`} ${mistake.detail}.`,
      {
        errors: [mistake],
      },
    )
  }
}

/** One request and its state. */
interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly startMs: number
  operation: Operation | undefined
  caller: string
}

interface Match {
  readonly checks: Checks
  readonly target: string
  readonly query: Record<string, string | string[]>
}

type Found = Omit<FindResult<never>, 'store'> & { readonly store: Checks | null }

/** Refusal of a method at a known path. */
class MethodRefusal extends Refusal {
  readonly allow: string

  constructor(allowed: readonly string[]) {
    super('bad-method', `The methods of this resource are ${allowed.join(', ')}.`)
    this.allow = allowed.join(', ')
  }
}

/** Answers OPTIONS for every resource; throws any other refusal. */
function optionsOf({ method }: IncomingMessage, refusal: Refusal): Answer {
  if (method !== 'OPTIONS' || !(refusal instanceof MethodRefusal)) throw refusal
  return { status: 204, text: '', headers: { allow: refusal.allow } }
}

function isStream({ operation }: Checks): boolean {
  return Object.values(operation.answers).some(({ content }) => content === EVENT_STREAM_TYPE)
}

/** HTTP/1.1 demands that a server checks this (RFC 9112, section 3.2). */
function checkHost({ httpVersion, headers }: IncomingMessage): void {
  if (httpVersion === '1.1' && headers.host === undefined) {
    throw malformed('The request', { at: 'host', detail: 'has no Host header' })
  }
}

function formOf({ checks, target, query }: Match): Pick<Call, 'target' | 'query'> {
  const mistake = checks.target?.(target)
  if (mistake !== undefined) throw malformed('The name in the path', { ...mistake, at: 'path' })
  if (isEmpty(query)) return { target, query: NOTHING }
  const coerced = coerce(query, checks.operation.query ?? {})
  const wrong = checks.query(coerced)
  if (wrong !== undefined) throw malformed('The query', { ...wrong, at: wrong.at.slice(1) || 'query' })
  return { target, query: coerced }
}

function malformed(what: string, mistake: { at: string; detail: string }): Refusal {
  return new Refusal('malformed', `${what} ${mistake.detail}.`, { errors: [mistake] })
}

function isEmpty(query: object): boolean {
  for (const _ in query) return false
  return true
}

/** Converts parameters to the types of the schema. Text that is no number stays text, which the check refuses. */
function coerce(
  query: Record<string, string | string[]>,
  schemas: Readonly<Record<string, QuerySchema>>,
): Record<string, unknown> {
  const entries = Object.entries(query).map(([name, value]) => {
    const type = schemas[name]?.type
    if (type === 'array') return [name, [value].flat()]
    return [name, type === 'integer' && /^\d{1,9}$/.test(String(value)) ? Number(value) : value]
  })
  return Object.fromEntries(entries) as Record<string, unknown>
}

/** Headers of the answer override those in `more`. */
function send(response: ServerResponse, answer: Answer, more: Readonly<Record<string, string>>): void {
  const { status, text, mediaType, headers = NOTHING } = answer
  const lines = ['cache-control', 'no-store']
  if (text !== '') lines.push('content-type', mediaType ?? JSON_TYPE)
  if (status !== 204) lines.push('content-length', String(Buffer.byteLength(text)))
  for (const name in headers) lines.push(name, headers[name] as string)
  for (const name in more) if (headers[name] === undefined) lines.push(name, more[name] as string)
  response.writeHead(status, lines).end(text)
}

function sendProblem(
  response: ServerResponse,
  refusal: Refusal,
  more: Readonly<Record<string, string>>,
): void {
  if (response.headersSent) {
    response.destroy()
    return
  }
  const { retryAfterMs } = refusal.extra
  send(
    response,
    {
      status: refusal.status,
      text: JSON.stringify(refusal.document),
      mediaType: PROBLEM_MEDIA_TYPE,
      headers: {
        ...(retryAfterMs === undefined ? {} : { 'retry-after': String(Math.ceil(retryAfterMs / 1000)) }),
        ...(refusal.code === 'unauthenticated' ? { 'www-authenticate': 'Bearer realm="fastsockets"' } : {}),
        ...(refusal instanceof MethodRefusal ? { allow: refusal.allow } : {}),
        ...(ENDING.has(refusal.code) ? { connection: 'close' } : {}),
      },
    },
    more,
  )
}
