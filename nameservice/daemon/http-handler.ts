/** From a request to an answer: route, caller, rate, form, operation; whatever is refused becomes a problem document. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises'
import type makeRouter from 'find-my-way'
import type { FindResult, Instance } from 'find-my-way'
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
/** After these nothing more is to be heard on the connection. */
const ENDING: ReadonlySet<ProblemCode> = new Set(['stopping', 'request-timeout'])
/** A name may have 200 characters, each written as three. */
const TARGET_LENGTH_MAX = 1000
/** What is observed of a request that has not got as far as an operation, or a caller. */
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
}

/**
 * Who calls; throws a refusal if that must be known and is not. `isOpen`: it need not. `isAgain`: it was asked for this
 * request before, which does not count twice.
 */
export type Authenticate = (request: IncomingMessage, isOpen: boolean, isAgain: boolean) => Principal

export class HttpHandler {
  readonly #options: HttpHandlerOptions
  readonly #router: Instance<never>
  readonly #checks: Checks[] = []
  readonly #unread = new UnreadAnswers()
  readonly #changes = new ChangesByOwner()

  constructor(options: HttpHandlerOptions) {
    this.#options = options
    // By require: to import it, Node would look through all of its text for what it exports.
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
      // The name is the rest of the path: its slashes need not be escaped.
      this.#router.on(method, path.replace('{name}', '*').replace(PARAMETER, ':target'), () => {}, checks)
    }
  }

  /** Makes ready what the first requests would otherwise wait for: a moment later, and bit by bit, so that none waits. */
  async prepare(): Promise<void> {
    await delay(PREPARE_DELAY_MS, undefined, { ref: false })
    for (const { target, body } of this.#checks) {
      await nextTurn()
      target?.('')
      body?.(undefined)
    }
  }

  /** Answers at once if the operation does, and that is what most of them do. */
  handle(request: IncomingMessage, response: ServerResponse, authenticate: Authenticate): void {
    const exchange: Exchange = {
      request,
      response,
      startMs: performance.now(),
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
    // Probes are answered to the end: a daemon that stops lives, but is not ready.
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
    // The caller's token may have ended while the body came in, or may do something else now.
    return this.#body(request, match.checks).then(body => operate(authenticate(request, false, true), body))
  }

  /** What waits for the store counts. */
  async #change(operation: Operation, call: Call): Promise<Answer | undefined> {
    const { owner } = call.principal
    this.#changes.begin(owner)
    try {
      return await operation.handle(call)
    } finally {
      this.#changes.end(owner)
    }
  }

  /** Undefined: it has answered by itself. */
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
    const durationMs = performance.now() - startMs
    this.#options.observer.handleAnswer(operation?.id ?? NO_OPERATION, response.statusCode, durationMs)
  }

  #freshnessOf(operation: Operation | undefined): Readonly<Record<string, string>> {
    return operation?.hasFreshness === true ? this.#options.freshness() : NOTHING
  }

  /** What is asked for, or why there is no such thing. */
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

  /** Its `store` is null if the path is not well-formed. */
  #find(method: string, url: string) {
    return this.#router.find(method as Method, url) as Found | null
  }

  /** Those whom nobody knows have been counted by their addresses. */
  #limitRate(principal: Principal, nowMs: number): void {
    if (principal === ANONYMOUS) return
    const { owner } = principal
    const waitMs = this.#options.buckets.take(owner, nowMs)
    if (waitMs === 0) return
    const { requestsPerSecond } = this.#options.limits
    throw new Refusal('rate', `An owner may make ${requestsPerSecond} requests a second.`, {
      retryAfterMs: waitMs,
    })
  }

  async #body(request: IncomingMessage, { operation, body: check }: Checks): Promise<unknown> {
    const body = await readJson(request, this.#options.limits)
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

/** One request, and what is known of it so far. */
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

/** A path that is known, but not for this method. */
class MethodRefusal extends Refusal {
  readonly allow: string

  constructor(allowed: readonly string[]) {
    super('bad-method', `The methods of this resource are ${allowed.join(', ')}.`)
    this.allow = allowed.join(', ')
  }
}

/** OPTIONS is every resource's; whatever else has come here is refused. */
function optionsOf({ method }: IncomingMessage, refusal: Refusal): Answer {
  if (method !== 'OPTIONS' || !(refusal instanceof MethodRefusal)) throw refusal
  return { status: 204, text: '', headers: { allow: refusal.allow } }
}

function isStream({ operation }: Checks): boolean {
  return Object.values(operation.answers).some(({ content }) => content === EVENT_STREAM_TYPE)
}

/** As HTTP/1.1 demands of a server. */
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

/** Parameters as the schema has them; what does not look like a number stays what it is, and is refused by the check. */
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

/** `more` are headers that those of the answer stand before. */
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
