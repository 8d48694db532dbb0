/** Runs the cases, and prints a line for each suite. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import {
  createRegistry,
  type DescFile,
  type DescMessage,
  fromJson,
  type JsonValue,
  type Message,
  type Registry,
  toBinary,
  toJson,
} from '@bufbuild/protobuf'
import type { Transport } from '@connectrpc/connect'
import { parse } from 'yaml'
import { type Endpoint, openEndpoint } from '../../am/index.ts'
import { createFastTransport } from '../../am/rpc/connect/index.ts'
import { type Case, differences, expectationOf, type Result } from './expectation.ts'

/** Bytes of the longest request that the service takes in the suite about that. */
const LIMIT = 200 * 1024
/** Of one case; the longest waits 1.5 s. */
const CASE_MS_MAX = 30_000

interface Suite {
  readonly name: string
  readonly testCases?: readonly (Case & {
    readonly expandRequests?: readonly { sizeRelativeToLimit?: number }[]
  })[]
  readonly relevantProtocols?: readonly string[]
  readonly reliesOnTls?: boolean
  readonly reliesOnConnectGet?: boolean
  readonly reliesOnMessageReceiveLimit?: boolean
}

type Client = (transport: Transport, request: Message) => Promise<Message>

/** Connect's own clients for the cases: one whose calls are promises, and one with callbacks, which has no streams of requests. */
interface Clients {
  readonly promise: Client
  readonly callback: Client
}

interface Schemas {
  readonly registry: Registry
  readonly suite: DescMessage
  readonly request: DescMessage
  readonly result: DescMessage
}

/** Why a suite cannot run without HTTP; undefined if it can. */
function whyNot({
  relevantProtocols = [],
  reliesOnTls,
  reliesOnConnectGet,
  testCases = [],
}: Suite): string | undefined {
  if (relevantProtocols.length > 0) return `bytes of ${relevantProtocols.join(', ')}`
  if (reliesOnTls === true) return 'TLS'
  if (reliesOnConnectGet === true) return 'GET'
  return testCases.every(isRaw) ? 'raw HTTP' : undefined
}

function isRaw({ request }: Case): boolean {
  const text = JSON.stringify(request)
  return text.includes('"rawResponse"') || text.includes('"rawRequest"')
}

/** Runs all suites that can; returns how many cases failed. */
export async function runSuites(compiled: string, files: readonly string[]): Promise<number> {
  const load = async (name: string) => await import(pathToFileURL(join(compiled, name)).href)
  const [service, suites, client] = await Promise.all([
    load('gen/connectrpc/conformance/v1/service_pb.js'),
    load('gen/connectrpc/conformance/v1/suite_pb.js'),
    load('gen/connectrpc/conformance/v1/client_compat_pb.js'),
  ])
  const schemas: Schemas = {
    registry: createRegistry(service.file_connectrpc_conformance_v1_service as DescFile),
    suite: suites.TestSuiteSchema,
    request: client.ClientCompatRequestSchema,
    result: client.ClientResponseResultSchema,
  }
  const clients: Clients = {
    promise: (await load('promise-client.js')).invokeWithPromiseClient,
    callback: (await load('callback-client.js')).invokeWithCallbackClient,
  }
  const endpoint = await openEndpoint()
  let failures = 0
  try {
    for (const file of files) failures += await runSuite(file, compiled, endpoint, clients, schemas)
  } finally {
    await endpoint.close()
  }
  return failures
}

async function runSuite(
  file: string,
  compiled: string,
  endpoint: Endpoint,
  clients: Clients,
  schemas: Schemas,
): Promise<number> {
  const { registry } = schemas
  // The cases name an empty message by nothing.
  const yaml = parse(readFileSync(file, 'utf8'), (key, value) =>
    key === 'beforeCloseSend' ? {} : value,
  ) as JsonValue
  const why = whyNot(yaml as unknown as Suite)
  if (why !== undefined) {
    console.log(`SKIPPED ${basename(file)}: ${why}`)
    return 0
  }
  const given = fromJson(schemas.suite, yaml, { registry })
  const suite = toJson(schemas.suite, given, { registry }) as unknown as Suite
  const argv = [pathToFileURL(join(compiled, 'routes.js')).href]
  if (suite.reliesOnMessageReceiveLimit === true) argv.push(String(LIMIT))
  const child = fork(fileURLToPath(new URL('service-child.js', import.meta.url)), argv)
  try {
    const [{ name }] = (await once(child, 'message')) as [{ name: string }]
    const cases = (suite.testCases ?? []).filter(one => !isRaw(one))
    let failures = 0
    let calls = 0
    for (const one of cases) {
      const { expandRequests = [] } = one
      const requestMessages = (one.request.requestMessages ?? []).map((message, i) =>
        expanded(message, expandRequests[i]?.sizeRelativeToLimit, registry),
      )
      const request = { ...one.request, requestMessages }
      for (const [kind, client] of Object.entries(clients) as [string, Client][]) {
        if (kind === 'callback' && !CALLBACK_TYPES.includes(request.streamType)) continue
        calls++
        const found = await runCase({ ...one, request }, client, endpoint, name, schemas)
        if (found.length > 0) failures++
        for (const difference of found)
          console.log(`FAILED ${suite.name}: ${one.request.testName}, ${kind}: ${difference}`)
      }
    }
    console.log(`${failures === 0 ? 'ok' : 'FAILED'} ${basename(file)}: ${calls} calls, ${failures} failed`)
    return failures
  } finally {
    child.disconnect()
  }
}

async function runCase(
  one: Case,
  client: Client,
  endpoint: Endpoint,
  to: string,
  schemas: Schemas,
): Promise<string[]> {
  const { registry } = schemas
  const method = METHODS[one.request.streamType] as string
  const json = { service: 'connectrpc.conformance.v1.ConformanceService', method, ...one.request }
  const request = fromJson(schemas.request, json as unknown as JsonValue, { registry })
  const { timeoutMs } = one.request
  const transport = createFastTransport({
    endpoint,
    to,
    ...(timeoutMs !== undefined && { defaultTimeoutMs: timeoutMs }),
  })
  const signal = AbortSignal.timeout(CASE_MS_MAX)
  const isLate = once(signal, 'abort').then(() =>
    Promise.reject(new Error(`no result within ${CASE_MS_MAX} ms`)),
  )
  const result = await Promise.race([client(transport, request), isLate])
  const actual = toJson(schemas.result, result, { registry }) as unknown as Result
  return differences(expectationOf(one), actual, one.otherAllowedErrorCodes ?? [])
}

const CALLBACK_TYPES = ['STREAM_TYPE_UNARY', 'STREAM_TYPE_SERVER_STREAM']
const METHODS: Readonly<Record<string, string>> = {
  STREAM_TYPE_UNARY: 'Unary',
  STREAM_TYPE_CLIENT_STREAM: 'ClientStream',
  STREAM_TYPE_SERVER_STREAM: 'ServerStream',
  STREAM_TYPE_HALF_DUPLEX_BIDI_STREAM: 'BidiStream',
  STREAM_TYPE_FULL_DUPLEX_BIDI_STREAM: 'BidiStream',
}

/** A request with so much data that it is so many bytes longer than the limit. */
function expanded<T extends object>(message: T, relative: number | undefined, registry: Registry): T {
  if (relative === undefined) return message
  const { '@type': url, ...fields } = message as { '@type': string }
  const schema = registry.getMessage(url.slice(url.indexOf('/') + 1)) as DescMessage
  const sized = (bytes: number) => ({ ...fields, requestData: Buffer.alloc(bytes, 'x').toString('base64') })
  const lengthOf = (bytes: number): number =>
    toBinary(schema, fromJson(schema, sized(bytes) as JsonValue, { registry })).length
  const bytes = LIMIT + relative - (lengthOf(LIMIT + relative) - LIMIT - relative)
  return { '@type': url, ...sized(bytes) } as unknown as T
}
