/**
 * What a case of connectrpc/conformance expects, and how a result differs from it. Cases and results are in protobuf's JSON. A case
 * that names no result expects what its first request tells the service to answer.
 */

export interface Header {
  readonly name: string
  readonly value?: readonly string[]
}

interface RequestInfo {
  readonly requestHeaders?: readonly Header[]
  readonly requests?: readonly object[]
  readonly timeoutMs?: string
}

interface Payload {
  readonly data?: string
  readonly requestInfo?: RequestInfo
}

interface WireError {
  readonly code?: string
  readonly message?: string
  readonly details?: readonly object[]
}

export interface Result {
  readonly responseHeaders?: readonly Header[]
  readonly responseTrailers?: readonly Header[]
  readonly payloads?: readonly Payload[]
  readonly error?: WireError
}

interface Definition {
  readonly responseHeaders?: readonly Header[]
  readonly responseTrailers?: readonly Header[]
  /** A list where the method has a stream of responses. */
  readonly responseData?: string | readonly string[]
  readonly error?: WireError
}

interface Request {
  readonly responseDefinition?: Definition
}

export interface Case {
  readonly request: {
    readonly testName: string
    readonly streamType: string
    readonly requestHeaders?: readonly Header[]
    readonly requestMessages?: readonly Request[]
    readonly timeoutMs?: number
  }
  readonly expectedResponse?: Result
  readonly otherAllowedErrorCodes?: readonly string[]
}

const FULL_DUPLEX = 'STREAM_TYPE_FULL_DUPLEX_BIDI_STREAM'
const ONE_RESULT = ['STREAM_TYPE_UNARY', 'STREAM_TYPE_CLIENT_STREAM']
const INFO_TYPE = 'type.googleapis.com/connectrpc.conformance.v1.ConformancePayload.RequestInfo'

export function expectationOf({ request, expectedResponse }: Case): Result {
  if (expectedResponse !== undefined) return expectedResponse
  const { streamType, requestHeaders = [], requestMessages = [], timeoutMs } = request
  const timeout = timeoutMs === undefined ? {} : { timeoutMs: String(timeoutMs) }
  const info: RequestInfo = { requestHeaders, requests: requestMessages, ...timeout }
  const hasOneResult = ONE_RESULT.includes(streamType)
  const definition = requestMessages[0]?.responseDefinition
  if (definition === undefined) return hasOneResult ? { payloads: [{ requestInfo: info }] } : {}
  const { responseHeaders = [], responseTrailers = [], responseData, error } = definition
  const heads = { responseHeaders, responseTrailers }
  const isList = Array.isArray(responseData)
  const data: (string | undefined)[] = isList ? responseData : hasOneResult ? [responseData as string] : []
  const details = [...(error?.details ?? []), { '@type': INFO_TYPE, ...info }]
  if (error !== undefined && (hasOneResult || data.length === 0))
    return { ...heads, error: { ...error, details } }
  const payloads = data.map((bytes, i): Payload => {
    const own = bytes === undefined ? {} : { data: bytes }
    if (streamType !== FULL_DUPLEX) return { ...own, ...(i === 0 && { requestInfo: info }) }
    const head = i === 0 ? { requestHeaders, ...timeout } : {}
    return { ...own, requestInfo: { ...head, requests: [requestMessages[i] as object] } }
  })
  return { ...heads, payloads, ...(error && { error }) }
}

/** Sentences, each of one difference. */
export function differences(expected: Result, actual: Result, otherCodes: readonly string[]): string[] {
  const found: string[] = []
  if (expected.error === undefined || (expected.responseHeaders?.length ?? 0) > 0) {
    found.push(...headerDifferences('response header', expected.responseHeaders, actual.responseHeaders))
    found.push(...headerDifferences('response trailer', expected.responseTrailers, actual.responseTrailers))
  }
  const [wanted, got] = [expected.payloads ?? [], actual.payloads ?? []]
  if (wanted.length !== got.length) found.push(`${got.length} responses, not ${wanted.length}`)
  for (const [i, payload] of wanted.slice(0, got.length).entries()) {
    const other = got[i] as Payload
    if ((payload.data ?? '') !== (other.data ?? '')) found.push(`response ${i} has other data`)
    found.push(...infoDifferences(payload.requestInfo, other.requestInfo, i === 0))
  }
  return [...found, ...errorDifferences(expected.error, actual.error, otherCodes)]
}

function errorDifferences(
  expected: WireError | undefined,
  actual: WireError | undefined,
  otherCodes: readonly string[],
): string[] {
  if (expected === undefined) return actual === undefined ? [] : [`failed: ${JSON.stringify(actual)}`]
  if (actual === undefined) return [`succeeded, instead of ${JSON.stringify(expected)}`]
  const found: string[] = []
  if (![expected.code, ...otherCodes].includes(actual.code))
    found.push(`failed with ${actual.code} ${actual.message}, not ${expected.code}`)
  if (expected.message !== undefined && expected.message !== actual.message)
    found.push(`says ${JSON.stringify(actual.message)}, not ${JSON.stringify(expected.message)}`)
  const [wanted, got] = [expected.details ?? [], actual.details ?? []]
  if (wanted.length !== got.length) found.push(`${got.length} details, not ${wanted.length}`)
  for (const [i, detail] of wanted.slice(0, got.length).entries()) {
    const isInfo = (detail as { '@type'?: string })['@type'] === INFO_TYPE
    if (isInfo) found.push(...infoDifferences(detail, got[i] as RequestInfo, true))
    else if (textOf(detail) !== textOf(got[i])) found.push(`detail ${i} is ${textOf(got[i])}`)
  }
  return found
}

/** `isFirst`: only the first response says which headers and deadline the service has seen. */
function infoDifferences(expected: RequestInfo = {}, actual: RequestInfo = {}, isFirst: boolean): string[] {
  const found: string[] = []
  if (isFirst) {
    found.push(...headerDifferences('request header', expected.requestHeaders, actual.requestHeaders))
    const [wanted, got] = [expected.timeoutMs, actual.timeoutMs]
    const isNear = wanted === undefined ? got === undefined : Number(got) > 0 && Number(got) <= Number(wanted)
    if (!isNear) found.push(`the service saw a deadline of ${got} ms, not ${wanted}`)
  }
  const [wanted, got] = [textOf(expected.requests ?? []), textOf(actual.requests ?? [])]
  if (wanted !== got) found.push(`the service saw the requests ${got}, not ${wanted}`)
  return found
}

function headerDifferences(
  what: string,
  expected: readonly Header[] = [],
  actual: readonly Header[] = [],
): string[] {
  const got = new Map(actual.map(({ name, value }) => [name.toLowerCase(), valuesOf(value)]))
  return expected
    .map(({ name, value }) => [name.toLowerCase(), valuesOf(value)] as const)
    .filter(([name, value]) => got.get(name) !== value)
    .map(([name, value]) => `${what} ${name} is ${got.get(name)}, not ${value}`)
}

/** HTTP's lists: several values and one with commas are the same. */
function valuesOf(values: readonly string[] = []): string {
  return values
    .join(',')
    .split(',')
    .map(value => value.trim())
    .join(', ')
}

/** With sorted keys. */
function textOf(value: unknown): string {
  return JSON.stringify(value, (_, part) =>
    typeof part === 'object' && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  )
}
