/** One operation of the interface: how it is called, what it needs, what it answers. Routes and OpenAPI come from these. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ProblemCode } from '../problem.ts'
import type { Principal } from './principal.ts'

export interface Call {
  readonly principal: Principal
  /** The one parameter of the path, or empty. */
  readonly target: string
  readonly query: Readonly<Record<string, unknown>>
  readonly body: unknown
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

export interface Answer {
  readonly status: number
  /** The body, or empty. */
  readonly text: string
  readonly mediaType?: string
  readonly headers?: Readonly<Record<string, string>>
}

export type Method = 'GET' | 'PUT' | 'POST' | 'DELETE'

export interface Operation {
  readonly id: string
  readonly method: Method
  /** With at most one parameter in braces, at any place. */
  readonly path: string
  readonly summary: string
  readonly description?: string
  /** `open`: even without a token. */
  readonly access: 'open' | 'read' | 'write'
  /** Schema of the path's parameter. */
  readonly target?: object
  /** Schemas of the parameters of the query. An array may be given several times. */
  readonly query?: Readonly<Record<string, QuerySchema>>
  /** Schema of the JSON body, and its name in the OpenAPI document. */
  readonly body?: { readonly name: string; readonly schema: object; readonly isOptional?: boolean }
  /** By status: a named schema, or a media type that is no JSON, or null for nothing. */
  readonly answers: Readonly<
    Record<number, { readonly description: string; readonly content: string | null }>
  >
  /** Whether a short question gets a long answer: it must be read before there are many more. */
  readonly isListing?: boolean
  /** Whether answers, and refusals, say how fresh the names are that they speak of. */
  readonly hasFreshness?: boolean
  /** Problems that are this operation's own. */
  readonly problems: readonly ProblemCode[]
  /** Undefined: it answers by itself. Throws refusals. */
  handle(call: Call): Answer | undefined | Promise<Answer>
}

export type QuerySchema =
  | { readonly type: 'string' }
  | { readonly type: 'integer' }
  | { readonly type: 'array' }

export const JSON_TYPE = 'application/json'
export const EVENT_STREAM_TYPE = 'text/event-stream'
