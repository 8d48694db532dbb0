/** All refusals of the daemon, as problem documents (RFC 9457). */

/** Each code of a problem, its HTTP status and its title. A `type` is `urn:fastsockets:problem:` and the code. */
export const PROBLEMS = {
  malformed: [400, 'The request is not well-formed'],
  unauthenticated: [401, 'A valid token is needed'],
  forbidden: [403, 'The caller may not do this'],
  'no-credentials': [403, 'The caller cannot be identified'],
  'limit-leases': [403, 'The owner has too many leases'],
  'limit-names': [403, 'The lease or its owner has too many names'],
  'limit-bytes': [403, 'The records of the owner are too large together'],
  'limit-watchers': [403, 'The owner has too many watchers'],
  'limit-total': [403, 'The daemon holds as much as it may'],
  'no-such-resource': [404, 'There is nothing at this path'],
  'no-such-name': [404, 'The name is not registered'],
  'no-such-lease': [404, 'The lease does not exist or has ended'],
  'bad-method': [405, 'The resource does not know this method'],
  'request-timeout': [408, 'The request did not arrive in time'],
  'name-held': [409, 'Another owner holds the name'],
  behind: [410, 'The changes since then are no longer known'],
  'too-large': [413, 'The request is too large'],
  'bad-media-type': [415, 'The request body must be JSON'],
  rate: [429, 'Too many requests'],
  'limit-connections': [429, 'Too many connections'],
  'headers-too-large': [431, 'The request line and headers are too large'],
  internal: [500, 'The daemon failed'],
  'store-unavailable': [503, 'The store cannot be written now'],
  stopping: [503, 'The daemon is stopping'],
} as const satisfies Record<string, readonly [status: number, title: string]>

export type ProblemCode = keyof typeof PROBLEMS

export const PROBLEM_URN = 'urn:fastsockets:problem:'
export const PROBLEM_MEDIA_TYPE = 'application/problem+json'

export interface Problem {
  readonly type: string
  readonly title: string
  readonly status: number
  readonly detail: string
  /** `malformed`: the mistakes, each with a JSON pointer or the parameter's name. */
  readonly errors?: readonly { readonly at: string; readonly detail: string }[]
  /** Time after which a retry may succeed. */
  readonly retryAfterMs?: number
  /** `behind`: the oldest cursor from which a watch may start. */
  readonly oldest?: string
}

/** Refuses a request: the HTTP handler makes a problem document of it. */
export class Refusal extends Error {
  readonly code: ProblemCode
  readonly extra: Pick<Problem, 'errors' | 'retryAfterMs' | 'oldest'>

  constructor(code: ProblemCode, detail: string, extra: Refusal['extra'] = {}) {
    super(detail)
    this.name = 'Refusal'
    this.code = code
    this.extra = extra
  }

  get status(): number {
    return PROBLEMS[this.code][0]
  }

  get document(): Problem {
    const [status, title] = PROBLEMS[this.code]
    return { type: PROBLEM_URN + this.code, title, status, detail: this.message, ...this.extra }
  }
}
