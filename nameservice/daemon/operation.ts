/** One operation of the interface: its path, needs and answers. Routes and the OpenAPI document come from these. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ProblemCode } from '../problem.ts'
import type { Principal } from './principal.ts'

export interface Call {
  readonly principal: Principal
  /** The parameter of the path, or empty. */
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
  /** Contains at most one parameter in braces, at any place. */
  readonly path: string
  readonly summary: string
  readonly description?: string
  /** `open`: needs no token. */
  readonly access: 'open' | 'read' | 'write'
  /** Schema of the path's parameter. */
  readonly target?: object
  /** Schemas of the parameters of the query. A parameter of type array may be given several times. */
  readonly query?: Readonly<Record<string, QuerySchema>>
  /** Schema of the JSON body, and its name in the OpenAPI document. */
  readonly body?: { readonly name: string; readonly schema: object; readonly isOptional?: boolean }
  /** Answers by status: a named schema, or a media type other than JSON, or null for an empty body. */
  readonly answers: Readonly<
    Record<number, { readonly description: string; readonly content: string | null }>
  >
  /** True if a short request gets a long answer: the caller must read its answers before it gets more. */
  readonly isListing?: boolean
  /** True if answers, and refusals, have headers for the freshness of the names in them. */
  readonly hasFreshness?: boolean
  /** Problems that only this operation has. */
  readonly problems: readonly ProblemCode[]
  /** Undefined if the operation answers by itself. Throws refusals. */
  handle(call: Call): Answer | undefined | Promise<Answer>
}

export type QuerySchema =
  | { readonly type: 'string' }
  | { readonly type: 'integer' }
  | { readonly type: 'array' }

export const JSON_TYPE = 'application/json'
export const EVENT_STREAM_TYPE = 'text/event-stream'
