/** Malformed and oversized requests: made from the OpenAPI document, and made of nothing at all. */
import { once } from 'node:events'
import { connect } from 'node:net'
import t from 'tap'
import { ApiContract, type ContractOperation } from '../support/api-contract.ts'
import { Named } from '../support/named.ts'
import { type Random, seededRandom } from '../support/random.ts'
import { eventually } from '../support/until.ts'

interface Schema {
  readonly [keyword: string]: unknown
}

/** Something for every pattern in the document, and something for none. */
const TEXTS = [
  'a',
  'a/b',
  'services/printer',
  '..',
  '/',
  'inet:tcp:10.0.0.7:80',
  'inet:tcp:::1:65535',
  '0123456789abcdef',
  '0000000000000000',
  'QUJD',
  'QUI=',
  '',
  'shm',
  'room',
  '0123456789ab-1',
  '0123456789ab-7.3',
  'A',
  'ü',
  ' ',
  '\0',
  '%',
  '%zz',
  '__proto__',
  'constructor',
  '<script>',
  "';--",
  '☃'.repeat(50),
  'x'.repeat(201),
  'x'.repeat(5000),
  '\r\nx: y',
  '../../etc/passwd',
] as const
const NUMBERS = [0, 1, -1, 1.5, 80, 999, 1000, 65_535, 65_536, 2 ** 31, 2 ** 32, 2 ** 53, 1e300, -0] as const
const STRANGE = [null, true, [], {}, [[[]]], { a: {} }, 'x', 7] as const

class Maker {
  readonly #contract: ApiContract
  readonly #random: Random
  readonly known: string[] = []

  constructor(contract: ApiContract, random: Random) {
    this.#contract = contract
    this.#random = random
  }

  /** Mostly what the schema asks for; sometimes anything. */
  value(given: Schema, depth = 0): unknown {
    const random = this.#random
    const schema = this.#contract.resolve(given)
    if (random.chance(0.07) || depth > 6) return random.pick(STRANGE)
    switch (schema.type) {
      case 'object':
        return this.#object(schema, depth)
      case 'array':
        return Array.from({ length: random.chance(0.05) ? 400 : random.within(0, 3) }, () =>
          this.value(schema.items as Schema, depth + 1),
        )
      case 'integer':
        return random.pick(NUMBERS)
      case 'boolean':
        return random.chance(0.5)
      default:
        return this.text(schema)
    }
  }

  text({ pattern, enum: choices }: Schema): string {
    const random = this.#random
    if (Array.isArray(choices) && random.chance(0.8))
      return String(choices[random.within(0, choices.length - 1)])
    const all = [...TEXTS, ...this.known]
    const fitting = typeof pattern === 'string' ? all.filter(text => new RegExp(pattern).test(text)) : all
    const pool = random.chance(0.8) && fitting.length > 0 ? fitting : all
    return pool[random.within(0, pool.length - 1)] as string
  }

  #object(schema: Schema, depth: number): object {
    const random = this.#random
    const required = new Set(schema.required as string[] | undefined)
    const made: Record<string, unknown> = {}
    for (const [name, member] of Object.entries((schema.properties ?? {}) as Record<string, Schema>)) {
      if (random.chance(required.has(name) ? 0.95 : 0.4)) made[name] = this.value(member, depth + 1)
    }
    if (random.chance(0.05)) made[random.pick(TEXTS)] = random.pick(STRANGE)
    return made
  }
}

function pathOf(path: string, { parameters = [] }: ContractOperation, maker: Maker, random: Random): string {
  let made = path
  const query: string[] = []
  for (const { name, in: place, schema } of parameters) {
    if (place === 'path') made = made.replace(`{${name}}`, encodeURIComponent(maker.text(schema)))
    const count = place === 'query' ? random.within(0, 2) : 0
    for (let i = 0; i < count; i++) {
      const value = maker.value(schema.type === 'array' ? (schema.items as Schema) : schema)
      query.push(`${name}=${random.chance(0.9) ? encodeURIComponent(String(value)) : '%%%'}`)
    }
  }
  if (random.chance(0.03)) query.push('x=1')
  return query.length === 0 ? made : `${made}?${query.join('&')}`
}

t.test('whatever is made from the document gets an answer that the document promises', async t => {
  const random = seededRandom(t)
  const named = await Named.start(t)
  const { pid } = named
  const contract = await ApiContract.of(named)
  const maker = new Maker(contract, random)
  maker.known.push(await named.grant())
  const operations = contract.operations.filter(({ path }) => path !== '/metrics')
  const counts = new Map<number, number>()
  for (let round = 0; round < 3000; round++) {
    const { method, path, operation } = operations[
      random.within(0, operations.length - 1)
    ] as (typeof operations)[0]
    const asked = pathOf(path, operation, maker, random)
    const schema = operation.requestBody?.content['application/json']?.schema
    const body = schema === undefined ? undefined : maker.value(schema)
    const reply = await named.ask(method, asked, body === undefined ? {} : { body })
    const complaint = reply.status >= 500 ? `${reply.status}` : contract.complaintAbout(method, asked, reply)
    if (complaint !== undefined) t.fail(`${method} ${asked}: ${complaint}`, { body, reply })
    counts.set(reply.status, (counts.get(reply.status) ?? 0) + 1)
  }
  t.comment(JSON.stringify(Object.fromEntries(counts)))
  for (const status of [200, 201, 204, 400, 404])
    t.ok((counts.get(status) ?? 0) > 0, `there were answers ${status}`)
  t.equal(named.pid, pid)
  t.equal((await named.ask('GET', '/healthz')).status, 200)
  t.strictSame(
    named.messages().filter(({ msg }) => msg === 'internal error'),
    [],
  )
})

const LINE_END = '\r\n'
const HEAD = `POST /v1/leases HTTP/1.1${LINE_END}host: x${LINE_END}content-type: application/json${LINE_END}`

/** What no client of ours would ever send. */
const STRANGE_BYTES: [what: string, make: (random: Random) => Buffer | string][] = [
  ['random bytes', random => random.bytes(random.within(1, 2000))],
  [
    'random bytes as a body',
    random =>
      Buffer.concat([Buffer.from(`${HEAD}content-length: 500${LINE_END.repeat(2)}`), random.bytes(500)]),
  ],
  ['TLS', () => Buffer.from('160301020001000100', 'hex')],
  ['HTTP/2', () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ['a version that is none', () => `GET / HTTP/9.9${LINE_END.repeat(2)}`],
  ['a method that is none', () => `BREW / HTTP/1.1${LINE_END}host: x${LINE_END.repeat(2)}`],
  ['two lengths', () => `${HEAD}content-length: 5${LINE_END}content-length: 6${LINE_END.repeat(2)}{}`],
  [
    'a length and chunks',
    () =>
      `${HEAD}content-length: 5${LINE_END}transfer-encoding: chunked${LINE_END.repeat(2)}0${LINE_END.repeat(2)}`,
  ],
  ['a negative length', () => `${HEAD}content-length: -5${LINE_END.repeat(2)}{}`],
  ['a length beyond all limits', () => `${HEAD}content-length: 99999999999999999999${LINE_END.repeat(2)}{}`],
  ['chunks that are none', () => `${HEAD}transfer-encoding: chunked${LINE_END.repeat(2)}zz${LINE_END}`],
  [
    'five thousand headers',
    () => `GET / HTTP/1.1${LINE_END}host: x${LINE_END}${`a: b${LINE_END}`.repeat(5000)}${LINE_END}`,
  ],
  ['an endless line', random => `GET /${'x'.repeat(random.within(20_000, 100_000))}`],
  [
    'an absolute URL',
    () =>
      `GET http://example.org/v1/names HTTP/1.1${LINE_END}host: x${LINE_END}connection: close${LINE_END.repeat(2)}`,
  ],
  ['no URL', () => `GET  HTTP/1.1${LINE_END}host: x${LINE_END.repeat(2)}`],
  ['CONNECT', () => `CONNECT example.org:80 HTTP/1.1${LINE_END}host: x${LINE_END.repeat(2)}`],
  [
    'an upgrade',
    () =>
      `GET /v1/watch HTTP/1.1${LINE_END}host: x${LINE_END}connection: upgrade, close${LINE_END}upgrade: websocket${LINE_END.repeat(2)}`,
  ],
  ['HTTP/1.0', () => `GET /healthz HTTP/1.0${LINE_END.repeat(2)}`],
  ['a body of nested lists', () => withBody('['.repeat(30_000))],
  ['a body of one huge number', () => withBody(`{"ttlMs":${'9'.repeat(30_000)}}`)],
  ['a body beyond the limit', () => withBody(' '.repeat(100_000))],
  [
    'garbage after a request',
    random =>
      `GET /healthz HTTP/1.1${LINE_END}host: x${LINE_END.repeat(2)}${random.bytes(50).toString('latin1')}`,
  ],
]

function withBody(body: string): string {
  return `${HEAD}content-length: ${body.length}${LINE_END}connection: close${LINE_END.repeat(2)}${body}`
}

t.test('whatever comes over the socket, the daemon says what is wrong or hangs up, and goes on', async t => {
  const random = seededRandom(t)
  const named = await Named.start(t)
  for (const [what, make] of STRANGE_BYTES) {
    for (let round = 0; round < 5; round++) {
      const socket = connect(named.socketPath)
      await once(socket, 'connect')
      let heard = ''
      let isClosed = false
      socket.setEncoding('latin1').on('data', data => {
        heard += data
      })
      socket
        .on('error', () => {})
        .once('close', () => {
          isClosed = true
        })
      socket.end(make(random))
      await eventually(what, () => isClosed)
      const statuses = [...heard.matchAll(/^HTTP\/1\.1 (\d{3}) /gm)].map(([, status]) => Number(status))
      t.ok(
        statuses.every(status => status < 500),
        `${what}: ${statuses}`,
      )
    }
  }
  t.equal((await named.ask('GET', '/healthz')).status, 200)
  t.strictSame(
    named.messages().filter(({ msg }) => msg === 'internal error'),
    [],
  )
  t.equal(named.stderr, '')
})
