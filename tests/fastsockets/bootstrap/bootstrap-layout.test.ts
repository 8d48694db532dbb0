import { randomBytes } from 'node:crypto'
import t from 'tap'
import {
  ANSWER_BODY_MAX,
  ANSWER_HEADER_SIZE,
  ANSWER_MAGIC,
  type Answer,
  answerLength,
  decodeAnswer,
  decodeIntroduction,
  encodeAnswer,
  encodeIntroduction,
  GREETING_MAGIC,
  HELLO_MAGIC,
  INTRODUCTION_SIZE,
  type Introduction,
  mayBe,
  REFUSAL,
} from '../../../fastsockets/bootstrap/bootstrap-layout.ts'
import { seededRandom } from '../../support/random.ts'

const introductions: [what: string, introduction: Introduction][] = [
  ['ordinary', introduction({ version: 1, port: 8080, uid: 1000, pid: 12345 })],
  ['shared', { ...introduction({ version: 1, port: 8080, uid: 1000, pid: 12345 }), isShared: true }],
  ['required', { ...introduction({ version: 1, port: 8080, uid: 1000, pid: 12345 }), isRequired: true }],
  ['all zero', introduction({ version: 0, port: 0, uid: 0, pid: 0 })],
  ['all ones', introduction({ version: 0xffff, port: 0xffff, uid: 0xffff_ffff, pid: 0xffff_ffff })],
]

function introduction(numbers: { version: number; port: number; uid: number; pid: number }): Introduction {
  const ids = { endpointId: randomBytes(16), door: randomBytes(16), listenerId: randomBytes(16) }
  return { ...numbers, ...ids, isShared: false, isRequired: false, hostIdentity: randomBytes(16) }
}

for (const magic of [GREETING_MAGIC, HELLO_MAGIC]) {
  const name = JSON.stringify(magic.toString('latin1'))

  t.test(`what is encoded as ${name} is decoded again`, async t => {
    for (const [what, introduction] of introductions) {
      const bytes = encodeIntroduction(magic, introduction)
      t.equal(bytes.length, INTRODUCTION_SIZE)
      t.ok(mayBe(magic, bytes))
      t.strictSame(decodeIntroduction(magic, bytes), introduction, what)
    }
  })

  t.test(`what is not the 96 bytes of ${name} is nothing`, async t => {
    const bytes = encodeIntroduction(magic, introductions[0]?.[1] as Introduction)
    const other = magic === HELLO_MAGIC ? GREETING_MAGIC : HELLO_MAGIC
    t.equal(decodeIntroduction(other, bytes), undefined)
    t.equal(decodeIntroduction(magic, bytes.subarray(1)), undefined)
    t.equal(decodeIntroduction(magic, bytes.subarray(0, INTRODUCTION_SIZE - 1)), undefined)
    t.equal(decodeIntroduction(magic, Buffer.concat([bytes, Buffer.alloc(1)])), undefined)
    t.equal(decodeIntroduction(magic, Buffer.alloc(0)), undefined)
    for (let at = 0; at < magic.length; at++) {
      const defaced = Buffer.from(bytes)
      defaced[at] = (defaced[at] as number) ^ 1
      t.equal(decodeIntroduction(magic, defaced), undefined)
    }
  })
}

t.test('what was decoded is a copy: the bytes may be used again', async t => {
  const introduction = introductions[0]?.[1] as Introduction
  const bytes = encodeIntroduction(GREETING_MAGIC, introduction)
  const decoded = decodeIntroduction(GREETING_MAGIC, bytes)
  const answerBytes = encodeAnswer({ result: 0, driver: 'shm', blob: Buffer.from('blob') })
  const answer = decodeAnswer(answerBytes)
  bytes.fill(0)
  answerBytes.fill(0)
  t.strictSame(decoded, introduction)
  t.strictSame(answer?.blob, Buffer.from('blob'))
})

t.test('a stranger shows himself by his first byte', async t => {
  t.equal(mayBe(GREETING_MAGIC, Buffer.alloc(0)), true, 'nothing has been said yet')
  for (let length = 1; length <= 8; length++) {
    t.equal(mayBe(GREETING_MAGIC, GREETING_MAGIC.subarray(0, length)), true)
  }
  for (const greeting of [
    'SSH-2.0-OpenSSH_9.2\r\n',
    'HTTP/1.1 400 Bad Request',
    '220 ftp',
    '\0',
    'f',
    'FASTSOCk',
  ]) {
    t.equal(mayBe(GREETING_MAGIC, Buffer.from(greeting)), false, JSON.stringify(greeting))
  }
})

const answers: [what: string, answer: Answer][] = [
  ['an offer', { result: 0, driver: 'shm', blob: randomBytes(40) }],
  ['the largest offer', { result: 0, driver: 'shm', blob: randomBytes(ANSWER_BODY_MAX - 4) }],
  ...Object.entries(REFUSAL).map(([name, result]): [string, Answer] => [
    `the refusal ${name}`,
    { result, driver: '', blob: Buffer.alloc(0) },
  ]),
]

t.test('an answer that is encoded is decoded again', async t => {
  for (const [what, answer] of answers) {
    const bytes = encodeAnswer(answer)
    t.equal(answerLength(bytes), bytes.length, what)
    t.strictSame(decodeAnswer(bytes), answer, what)
  }
})

t.test('how long an answer is can be told from its header, before the rest has come', async t => {
  const bytes = encodeAnswer({ result: 0, driver: 'shm', blob: randomBytes(40) })
  for (let length = 0; length <= bytes.length; length++) {
    const expected = length < ANSWER_HEADER_SIZE ? ANSWER_HEADER_SIZE : bytes.length
    t.equal(answerLength(bytes.subarray(0, length)), expected, `${length} bytes`)
    if (length < bytes.length) t.equal(decodeAnswer(bytes.subarray(0, length)), undefined)
  }
  t.equal(decodeAnswer(Buffer.concat([bytes, Buffer.alloc(1)])), undefined)
})

t.test('an answer that would be too long, or whose driver name runs over its end, is none', async t => {
  const bytes = encodeAnswer({ result: 0, driver: 'shm', blob: Buffer.alloc(ANSWER_BODY_MAX - 3) })
  t.equal(answerLength(bytes), undefined)
  t.equal(decodeAnswer(bytes), undefined)

  const overrun = encodeAnswer({ result: 0, driver: 'shm', blob: Buffer.alloc(4) })
  overrun[ANSWER_HEADER_SIZE] = 8
  t.equal(decodeAnswer(overrun), undefined)
  overrun[ANSWER_HEADER_SIZE] = 7
  t.equal(decodeAnswer(overrun)?.blob.length, 0)
})

t.test('any bytes at all can be decoded without an exception', async t => {
  const random = seededRandom(t)
  const magics = [GREETING_MAGIC, HELLO_MAGIC, ANSWER_MAGIC]
  let decoded = 0
  for (let round = 0; round < 50_000; round++) {
    const length = random.chance(0.3) ? INTRODUCTION_SIZE : random.within(0, 600)
    const bytes = random.bytes(length)
    if (random.chance(0.8)) magics[random.within(0, 2)]?.copy(bytes)
    if (length >= 12 && random.chance(0.5)) bytes.writeUInt16LE(Math.max(0, length - ANSWER_HEADER_SIZE), 10)
    const introduction = decodeIntroduction(random.chance(0.5) ? GREETING_MAGIC : HELLO_MAGIC, bytes)
    const answer = decodeAnswer(bytes)
    if (introduction !== undefined || answer !== undefined) decoded++
    if (answer !== undefined && 1 + answer.driver.length + answer.blob.length > ANSWER_BODY_MAX)
      t.fail('too long')
  }
  t.ok(decoded > 0, `${decoded} of them meant something`)
})
