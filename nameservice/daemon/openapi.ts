/** The OpenAPI 3.1 document, made of the operations and schemas that the daemon uses. */
import { PROBLEM_MEDIA_TYPE, PROBLEMS, type ProblemCode } from '../problem.ts'
import { COMPONENT_SCHEMAS, FRESHNESS_HEADERS } from './api-schemas.ts'
import { JSON_TYPE, type Operation } from './operation.ts'

/** Problems of any request, of one with a body, and of one that needs a known caller. */
const COMMON: readonly ProblemCode[] = [
  'malformed',
  'request-timeout',
  'rate',
  'limit-connections',
  'headers-too-large',
  'internal',
  'stopping',
]
const WITH_BODY: readonly ProblemCode[] = ['too-large', 'bad-media-type']
const WITH_ACCESS: readonly ProblemCode[] = ['unauthenticated', 'forbidden']
const WITH_CHANGE: readonly ProblemCode[] = ['no-credentials']

const schemaRef = (name: string) => ({ $ref: `#/components/schemas/${name}` })

export function openApiDocument(operations: readonly Operation[], version: string): object {
  const paths: Record<string, Record<string, object>> = {}
  for (const operation of operations) {
    const methods = paths[operation.path] ?? {}
    methods[operation.method.toLowerCase()] = describe(operation)
    paths[operation.path] = methods
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Fast Sockets name service',
      version,
      description:
        'Names of endpoints, under leases. Over the unix socket the kernel says who calls, and the security schemes do not apply; over TCP tokens do. HEAD is answered as GET without the body, but for watches, and OPTIONS says which methods there are.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: 'http://localhost', description: 'over the unix socket' }],
    paths,
    components: {
      schemas: COMPONENT_SCHEMAS,
      securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
    },
  }
}

function describe(operation: Operation): object {
  const { id, summary, description, access, body, hasFreshness } = operation
  const parameters = parametersOf(operation)
  return {
    operationId: id,
    summary,
    ...(description === undefined ? {} : { description }),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            required: body.isOptional !== true,
            content: { [JSON_TYPE]: { schema: schemaRef(body.name) } },
          },
        }),
    security: access === 'open' ? [] : [{}, { token: [] }],
    responses: { ...answersOf(operation, hasFreshness === true), ...problemsOf(operation) },
  }
}

function parametersOf({ path, target, query = {} }: Operation): object[] {
  const [, name] = /\{(\w+)\}/.exec(path) ?? []
  const inPath = name === undefined ? [] : [{ name, in: 'path', required: true, schema: target }]
  const inQuery = Object.entries(query).map(([name, schema]) => ({ name, in: 'query', schema }))
  const isWatch = path === '/v1/watch'
  const lastEventId = { name: 'Last-Event-ID', in: 'header', schema: { type: 'string' } }
  return [...inPath, ...inQuery, ...(isWatch ? [lastEventId] : [])]
}

function answersOf({ answers }: Operation, hasFreshness: boolean): Record<string, object> {
  const responses = Object.entries(answers).map(([status, { description, content }]) => {
    const isMediaType = content?.includes('/') === true
    const schema = isMediaType ? {} : { schema: schemaRef(content ?? '') }
    return [
      status,
      {
        description,
        ...(hasFreshness ? { headers: FRESHNESS_HEADERS } : {}),
        ...(content === null ? {} : { content: { [isMediaType ? content : JSON_TYPE]: schema } }),
      },
    ]
  })
  return Object.fromEntries(responses) as Record<string, object>
}

/** Problems with the same status share one response. */
function problemsOf({ problems, access, body, answers }: Operation): Record<string, object> {
  const codes = new Set<ProblemCode>([...COMMON, ...problems])
  if (body !== undefined) for (const code of WITH_BODY) codes.add(code)
  if (access !== 'open') for (const code of WITH_ACCESS) codes.add(code)
  if (access === 'write') for (const code of WITH_CHANGE) codes.add(code)
  const byStatus = new Map<number, ProblemCode[]>()
  for (const code of codes) {
    const [status] = PROBLEMS[code]
    byStatus.set(status, [...(byStatus.get(status) ?? []), code])
  }
  const responses = [...byStatus]
    .filter(([status]) => !(status in answers))
    .map(([status, codes]) => [
      String(status),
      {
        description: codes.map(code => `${code}: ${PROBLEMS[code][1]}.`).join(' '),
        content: { [PROBLEM_MEDIA_TYPE]: { schema: schemaRef('Problem') } },
      },
    ])
  return Object.fromEntries(responses) as Record<string, object>
}
