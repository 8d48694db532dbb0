/** Every argument that cannot be right is refused at once, with a code, and costs nothing. */
import { inspect } from 'node:util'
import t, { type Test } from 'tap'
import {
  type Endpoint,
  type EndpointOptions,
  LONG_MAX_DEFAULT,
  MEDIUM_MAX,
  type Message,
  OK,
  openEndpoint,
} from '../../am/index.ts'
import { DRIVER_LISTS } from '../support/driver-lists.ts'
import { eightWords, keepArrivals } from '../support/endpoints.ts'
import { until } from '../support/until.ts'
import { testOver } from '../support/world.ts'

const SINK = 1
const ECHO = 2
const ANSWER = 3
const SEGMENT = 4096

const NOT_AN_INDEX = [-1, 0.5, Number.NaN, Infinity, '1', null, undefined, {}, 1n, true, Symbol('one')]
const NOT_A_DESTINATION = [...NOT_AN_INDEX, '0', 'length', 'map', 65536]
const NOT_A_HANDLER = [...NOT_AN_INDEX, 0, 256]
const NOT_A_WORD = [
  0.5,
  Number.NaN,
  Infinity,
  2 ** 31,
  -(2 ** 31) - 1,
  '1',
  null,
  undefined,
  {},
  1n,
  true,
  Symbol(),
]
const NOT_BYTES = [
  null,
  'text',
  5,
  [1, 2],
  new ArrayBuffer(8),
  new DataView(new ArrayBuffer(8)),
  { length: 3 },
]
const NOT_AN_OFFSET = [...NOT_AN_INDEX, 2 ** 32]
const NOT_OPTIONS = [null, 5, 'text', { timeout: 5 }]
const NOT_A_TIMEOUT = [-1, Number.NaN, '5', null, {}, 2 ** 31, 1n]
const NOT_A_SIGNAL = [null, 5, {}, 'abort']

/** A method with one argument after the other made wrong. */
type Attempt = [what: string, attempt: (endpoint: Endpoint) => unknown]

// biome-ignore lint/suspicious/noExplicitAny: wrong on purpose
type Any = any
function each(
  values: readonly unknown[],
  what: string,
  attempt: (e: Endpoint, value: Any) => unknown,
): Attempt[] {
  return values.map(value => [`${what} ${inspect(value)}`, endpoint => attempt(endpoint, value)])
}

const bytes = Buffer.alloc(8)
const tooMany = [1, 2, 3, 4, 5, 6, 7, 8, 9]
const tooLong = Buffer.alloc(LONG_MAX_DEFAULT + 1)
const notMedium = [...NOT_BYTES, undefined, Buffer.alloc(MEDIUM_MAX + 1)]

const SYNCHRONOUS: readonly Attempt[] = [
  ...each([...NOT_AN_INDEX, 256], 'setHandler', (e, index) => e.setHandler(index, () => {})),
  ...each([null, 5, 'f', {}], 'setHandler with', (e, handler) => e.setHandler(5, handler)),
  ...each(NOT_A_DESTINATION, 'unmap', (e, d) => e.unmap(d)),
  ...each([...NOT_AN_INDEX, 256], 'messages', (e, index) => e.messages(index)),
  ...each([...NOT_AN_INDEX.filter(limit => limit !== undefined), 0], 'poll', (e, limit) => e.poll(limit)),

  ...each(NOT_A_DESTINATION, 'request to', (e, d) => e.request(d, SINK)),
  ...each(NOT_A_HANDLER, 'request for', (e, h) => e.request(0, h)),
  ...each(NOT_A_WORD, 'request with first word', (e, word) => e.request(0, SINK, word)),
  ...each(NOT_A_WORD, 'request with last word', (e, word) => e.request(0, SINK, 1, 2, 3, 4, 5, 6, 7, word)),
  ['request with nine words', e => e.request(0, SINK, ...tooMany)],

  ...each(NOT_A_DESTINATION, 'requestMedium to', (e, d) => e.requestMedium(d, SINK, bytes)),
  ...each(NOT_A_HANDLER, 'requestMedium for', (e, h) => e.requestMedium(0, h, bytes)),
  ...each(notMedium, 'requestMedium of', (e, payload) => e.requestMedium(0, SINK, payload)),
  ...each(NOT_A_WORD, 'requestMedium with word', (e, word) => e.requestMedium(0, SINK, bytes, 1, word)),
  ['requestMedium with nine words', e => e.requestMedium(0, SINK, bytes, ...tooMany)],

  ...each(NOT_A_DESTINATION, 'requestLong to', (e, d) => e.requestLong(d, SINK, bytes, 0)),
  ...each(NOT_A_HANDLER, 'requestLong for', (e, h) => e.requestLong(0, h, bytes, 0)),
  ...each([...NOT_BYTES, undefined, tooLong], 'requestLong of', (e, payload) =>
    e.requestLong(0, SINK, payload, 0),
  ),
  ...each(NOT_AN_OFFSET, 'requestLong at', (e, offset) => e.requestLong(0, SINK, bytes, offset)),
  ['requestLong across 4 GiB', e => e.requestLong(0, SINK, bytes, 2 ** 32 - 8)],
  ...each(NOT_A_WORD, 'requestLong with word', (e, word) => e.requestLong(0, SINK, bytes, 0, word)),
  ['requestLong with nine words', e => e.requestLong(0, SINK, bytes, 0, ...tooMany)],

  ...each(NOT_A_DESTINATION, 'get from', (e, d) => e.get(d, SINK, 0, 8, 0)),
  ...each(NOT_A_HANDLER, 'get for', (e, h) => e.get(0, h, 0, 8, 0)),
  ...each(NOT_AN_OFFSET, 'get at', (e, offset) => e.get(0, SINK, offset, 8, 0)),
  ...each(NOT_AN_OFFSET, 'get of length', (e, length) => e.get(0, SINK, 0, length, 0)),
  ...each(NOT_AN_OFFSET, 'get into', (e, into) => e.get(0, SINK, 0, 8, into)),
  ['get into what lies behind the own segment', e => e.get(0, SINK, 0, 8, SEGMENT - 7)],
  ['get of more than a long message', e => e.get(0, SINK, 0, LONG_MAX_DEFAULT + 1, 0)],
  ...each(NOT_A_WORD, 'get with word', (e, word) => e.get(0, SINK, 0, 8, 0, word)),
  ['get with nine words', e => e.get(0, SINK, 0, 8, 0, ...tooMany)],
]

const PROMISED: readonly Attempt[] = [
  ...each(NOT_A_DESTINATION, 'map', (e, d) => e.map(d, e.name)),
  ...each([undefined, null, 5, {}, Symbol('name')], 'map to', (e, name) => e.map(1, name)),
  ...each([5, -1n, 2n ** 64n, '0', null, {}], 'map with tag', (e, tag) => e.map(1, e.name, tag)),

  ...each(NOT_A_DESTINATION, 'ready', (e, d) => e.ready(d)),
  ...each(NOT_OPTIONS, 'ready with options', (e, options) => e.ready(0, options)),
  ...each(NOT_A_SIGNAL, 'ready with signal', (e, signal) => e.ready(0, { signal })),

  ...each(NOT_A_DESTINATION, 'call to', (e, d) => e.call(d, ECHO)),
  ...each(NOT_A_HANDLER, 'call of', (e, h) => e.call(0, h)),
  ...each([...NOT_BYTES, Buffer.alloc(MEDIUM_MAX + 1)], 'call with', (e, payload) =>
    e.call(0, ECHO, payload),
  ),
  ...each([null, 5, 'ab', {}, tooMany], 'call with words', (e, words) => e.call(0, ECHO, bytes, words)),
  ...each(NOT_A_WORD, 'call with word', (e, word) => e.call(0, ECHO, bytes, [1, word])),
  ...each(NOT_OPTIONS, 'call with options', (e, options) => e.call(0, ECHO, bytes, [], options)),
  ...each(NOT_A_SIGNAL, 'call with signal', (e, signal) => e.call(0, ECHO, bytes, [], { signal })),
  ...each(NOT_A_TIMEOUT, 'call with time', (e, timeoutMs) => e.call(0, ECHO, bytes, [], { timeoutMs })),

  ...each(NOT_OPTIONS, 'wait with options', (e, options) => e.wait(options)),
  ...each(NOT_A_SIGNAL, 'wait with signal', (e, signal) => e.wait({ signal })),
  ...each(NOT_A_TIMEOUT, 'wait with time', (e, timeoutMs) => e.wait({ timeoutMs })),
]

function complain(complaints: string[], what: string, error: unknown): void {
  const { code } = error as { code?: unknown }
  const isRight = error instanceof TypeError || error instanceof RangeError
  if (!isRight || typeof code !== 'string' || !code.startsWith('ERR_AM_')) {
    complaints.push(`${what}: ${error}, code ${code}`)
  }
}

function refuse(complaints: string[], what: string, attempt: () => unknown): void {
  try {
    attempt()
    complaints.push(`${what} is accepted`)
  } catch (error) {
    complain(complaints, what, error)
  }
}

testOver(
  DRIVER_LISTS,
  'wrong arguments throw at once, with a code, and nothing is sent',
  async (t, world) => {
    const [a, b] = await world.openPair({ segment: SEGMENT }, { segment: SEGMENT })
    const arrivals = keepArrivals(b, SINK, ECHO)
    const before = a.stats()
    const complaints: string[] = []
    for (const [what, attempt] of SYNCHRONOUS) refuse(complaints, what, () => attempt(a))
    for (const [what, attempt] of PROMISED) {
      const promise = attempt(a) as Promise<unknown>
      await promise.then(
        () => complaints.push(`${what} is accepted`),
        error => complain(complaints, what, error),
      )
    }
    t.strictSame(complaints, [])
    t.strictSame(a.stats(), before, 'no credit is spent, nothing is counted')

    t.equal(a.request(0, SINK, 1, 2), OK)
    await until('the one right message', () => arrivals.length > 0)
    t.strictSame(
      arrivals.map(({ words }) => words),
      [eightWords(1, 2)],
      'and it works as before',
    )
  },
)

testOver(DRIVER_LISTS, 'a destination that is not mapped says so', async (t, world) => {
  const [a] = await world.openPair({ segment: SEGMENT })
  const expected = { name: 'RangeError', code: 'ERR_AM_NOT_MAPPED' }
  for (const destination of [1, 63, 65535]) {
    t.throws(() => a.request(destination, SINK), expected)
    t.throws(() => a.requestMedium(destination, SINK, bytes), expected)
    t.throws(() => a.requestLong(destination, SINK, bytes, 0), expected)
    t.throws(() => a.get(destination, SINK, 0, 8, 0), expected)
    await t.rejects(a.ready(destination), expected)
    await t.rejects(a.call(destination, SINK), expected)
    a.unmap(destination)
  }
})

testOver(DRIVER_LISTS, 'a closed endpoint says so, and may be closed again', async (t, world) => {
  const [a] = await world.openPair({ segment: SEGMENT })
  const messages = a.messages(SINK)
  const closing = a.close()
  const expected = { name: 'TypeError', code: 'ERR_AM_CLOSED' }
  const attempts = async (t: Test): Promise<void> => {
    t.throws(() => a.request(0, SINK), expected)
    t.throws(() => a.requestMedium(0, SINK, bytes), expected)
    t.throws(() => a.requestLong(0, SINK, bytes, 0), expected)
    t.throws(() => a.get(0, SINK, 0, 8, 0), expected)
    t.throws(() => a.setHandler(5, () => {}), expected)
    t.throws(() => a.unmap(0), expected)
    t.throws(() => a.messages(SINK), expected)
    t.throws(() => a.poll(), expected)
    await t.rejects(a.map(1, a.name), expected)
    await t.rejects(a.ready(0), expected)
    await t.rejects(a.call(0, SINK), expected)
    await t.rejects(a.wait(), expected)
  }
  await t.test('while it is closing', attempts)
  await closing
  await t.test('once it is closed', attempts)
  for await (const _ of messages) t.fail('a stream of a closed endpoint has nothing')
  t.strictSame(a.stats().peers, [])
  a.ref()
  a.unref()
  await a.close()
})

testOver(DRIVER_LISTS, 'a wrong reply throws, and the right one still goes', async (t, world) => {
  const [a, b] = await world.openPair()
  const answers = keepArrivals(a, ANSWER)
  const complaints: string[] = []
  let attempts = 0
  const attempt = (act: () => unknown, what: string): void => {
    attempts++
    refuse(complaints, what, act)
  }
  const refuseAll = (message: Message): void => {
    const any = message as Any
    for (const handler of NOT_A_HANDLER) {
      attempt(() => any.reply(handler), `reply to ${inspect(handler)}`)
      attempt(() => any.replyMedium(handler, bytes), `replyMedium to ${inspect(handler)}`)
      attempt(() => any.replyLong(handler, bytes, 0), `replyLong to ${inspect(handler)}`)
    }
    for (const word of NOT_A_WORD) {
      attempt(() => any.reply(ANSWER, word), `reply with ${inspect(word)}`)
      attempt(() => any.replyMedium(ANSWER, bytes, word), `replyMedium with ${inspect(word)}`)
      attempt(() => any.replyLong(ANSWER, bytes, 0, word), `replyLong with ${inspect(word)}`)
    }
    for (const payload of [...NOT_BYTES, undefined]) {
      attempt(() => any.replyMedium(ANSWER, payload), `replyMedium of ${inspect(payload)}`)
      attempt(() => any.replyLong(ANSWER, payload, 0), `replyLong of ${inspect(payload)}`)
    }
    for (const offset of NOT_AN_OFFSET) {
      attempt(() => any.replyLong(ANSWER, bytes, offset), `replyLong at ${inspect(offset)}`)
    }
    for (const index of [...NOT_AN_INDEX, 8]) attempt(() => any.word(index), `word ${inspect(index)}`)
    attempt(() => any.reply(ANSWER, ...tooMany), 'reply with nine words')
    attempt(() => any.replyMedium(ANSWER, bytes, ...tooMany), 'replyMedium with nine words')
    attempt(() => any.replyLong(ANSWER, bytes, 0, ...tooMany), 'replyLong with nine words')
    attempt(() => any.replyMedium(ANSWER, Buffer.alloc(MEDIUM_MAX + 1)), 'replyMedium of too much')
    attempt(() => any.replyLong(ANSWER, tooLong, 0), 'replyLong of too much')
  }
  b.setHandler(ECHO, message => {
    refuseAll(message)
    message.reply(ANSWER, 7)
  })
  a.request(0, ECHO)
  await until('the reply', () => answers.length > 0)
  t.ok(attempts > 100, `${attempts} wrong replies`)
  t.strictSame(complaints, [])
  t.strictSame(
    answers.map(({ words }) => words),
    [eightWords(7)],
  )
})

testOver(DRIVER_LISTS, 'wrong replies to messages of a stream throw, too', async (t, world) => {
  const [a, b] = await world.openPair()
  const reply = a.call(0, ECHO, bytes)
  for await (const message of b.messages(ECHO)) {
    const any = message as Any
    for (const handler of NOT_A_HANDLER) {
      t.throws(() => any.reply(handler), { code: 'ERR_AM_ARGUMENT' }, inspect(handler))
      t.throws(() => any.replyMedium(handler, bytes), { code: 'ERR_AM_ARGUMENT' }, inspect(handler))
    }
    for (const word of NOT_A_WORD) t.throws(() => any.reply(ANSWER, word), { code: 'ERR_AM_ARGUMENT' })
    for (const payload of [...NOT_BYTES, undefined, Buffer.alloc(MEDIUM_MAX + 1)]) {
      t.throws(() => any.replyMedium(ANSWER, payload), { code: 'ERR_AM_ARGUMENT' })
    }
    for (const index of [...NOT_AN_INDEX, 8]) {
      t.throws(() => any.word(index), { code: 'ERR_AM_ARGUMENT' }, `word ${inspect(index)}`)
    }
    message.reply(ANSWER, 9)
    break
  }
  t.equal((await reply).word(0), 9)
})

t.test('options that cannot be right are refused, and leave no endpoint behind', async t => {
  const wrong: unknown[] = [
    null,
    5,
    'shm',
    { colour: 'red' },
    { driver: 'shm' },
    ...[5, '0', -1n, 2n ** 64n, {}].map(tag => ({ tag })),
    ...[-1, 0.5, Number.NaN, '8', 2 ** 32, {}, 1n].map(segment => ({ segment })),
    ...['shm', 5, {}, ['no such driver'], [null], [5], [{}], []].map(drivers => ({ drivers })),
    ...['sometimes', 5, {}].map(progress => ({ progress })),
    ...[0, -1, 0.5, Number.NaN, '64', 32768, {}, 1n].map(credits => ({ credits })),
    ...[5, 'x', { medium: -1 }, { medium: MEDIUM_MAX + 1 }, { medium: '8' }].map(limits => ({ limits })),
    ...[{ long: -1 }, { long: 0.5 }, { long: 2 ** 32 }, { short: 8 }].map(limits => ({ limits })),
  ]
  const complaints: string[] = []
  for (const options of wrong) {
    await openEndpoint(options as EndpointOptions).then(
      async endpoint => {
        complaints.push(`${inspect(options)} is accepted`)
        await endpoint.close()
      },
      error => complain(complaints, inspect(options), error),
    )
  }
  t.strictSame(complaints, [])
})

t.test('options at their limits are taken', async t => {
  const right: EndpointOptions[] = [
    {},
    { tag: 0n },
    { tag: 2n ** 64n - 1n },
    { segment: 0 },
    { segment: 1 },
    { credits: 1 },
    { credits: 32767 },
    { progress: 'manual' },
    { limits: {} },
    { limits: { medium: 0, long: 0 } },
    { limits: { medium: MEDIUM_MAX, long: 2 ** 32 - 1 } },
  ]
  for (const options of right) {
    const endpoint = await openEndpoint(options)
    t.equal(endpoint.segment.length, options.segment ?? 0)
    t.strictSame(endpoint.limits, {
      words: 8,
      medium: options.limits?.medium ?? MEDIUM_MAX,
      long: options.limits?.long ?? LONG_MAX_DEFAULT,
    })
    t.match(endpoint.name, /^[!-~]+$/, 'a name is printable and without spaces')
    await endpoint.close()
  }
})
