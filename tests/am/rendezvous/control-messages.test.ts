import t from 'tap'
import { CREDITS_LIMIT } from '../../../am/index.ts'
import { type ControlMessage, decodeControl, LINE_MAX } from '../../../am/rendezvous/control-messages.ts'
import { SEGMENT_MAX } from '../../../am/segment.ts'

const RIGHT: { readonly [K in ControlMessage['op']]: ControlMessage & { op: K } } = {
  open: {
    op: 'open',
    version: 2,
    to: '0123456789abcdef',
    from: 'am1-x',
    drivers: ['shm'],
    credits: 64,
    tag: '0000000000000000',
  },
  offer: { op: 'offer', driver: 'shm', blob: 'AAAA', credits: 64 },
  reply: { op: 'reply', blob: 'AAAA' },
  refuse: { op: 'refuse', code: 'NO_DRIVER', text: 'none' },
  map: { op: 'map', id: 0, tag: '0000000000000000' },
  mapped: { op: 'mapped', id: 0, isTagRight: true, segment: 0, longMax: 0, isReadOnly: false, key: '' },
  unmap: { op: 'unmap', bounced: 0 },
  bye: { op: 'bye' },
  who: { op: 'who' },
  here: { op: 'here', name: 'am1-x' },
}

function decode(message: object): ControlMessage | undefined {
  return decodeControl(JSON.stringify(message))
}

const ID_MAX = 2 ** 31 - 1
const WHOLE_NUMBERS: [op: ControlMessage['op'], field: string, min: number, max: number][] = [
  ['open', 'version', 0, ID_MAX],
  ['open', 'credits', 1, CREDITS_LIMIT],
  ['offer', 'credits', 1, CREDITS_LIMIT],
  ['map', 'id', 0, ID_MAX],
  ['mapped', 'id', 0, ID_MAX],
  ['mapped', 'segment', 0, SEGMENT_MAX],
  ['mapped', 'longMax', 0, SEGMENT_MAX],
  ['unmap', 'bounced', 0, Number.MAX_SAFE_INTEGER],
]
const TEXTS: [op: ControlMessage['op'], field: string, lengthMax: number][] = [
  ['open', 'from', 256],
  ['offer', 'driver', 256],
  ['offer', 'blob', 4096],
  ['refuse', 'text', 256],
  ['mapped', 'key', 4096],
  ['here', 'name', 256],
]
const PATTERNS: [op: ControlMessage['op'], field: string, right: string[], wrong: string[]][] = [
  [
    'open',
    'to',
    ['ffffffffffffffff'],
    ['', '0', '0123456789ABCDEF', '0123456789abcdef0', '0123456789abcde\n'],
  ],
  ['open', 'tag', ['ffffffffffffffff'], ['', '0', '0123456789abcdeg']],
  ['map', 'tag', ['ffffffffffffffff'], ['', '0', '0123456789abcdeg', '0x123456789abcde', ' 123456789abcdef']],
  [
    'refuse',
    'code',
    ['VERSION', 'NO_SUCH_ENDPOINT', 'LIMIT'],
    ['', 'version', 'VERSION ', 'OTHER', 'LIMIT\n'],
  ],
]

t.test('each message is what it says', async t => {
  for (const message of Object.values(RIGHT)) t.strictSame(decode(message), message)
})

t.test('a message without one of its fields is none', async t => {
  for (const message of Object.values(RIGHT)) {
    for (const field of Object.keys(message))
      t.equal(decode({ ...message, [field]: undefined }), undefined, field)
  }
})

t.test('a number is whole and within its limits', async t => {
  for (const [op, field, min, max] of WHOLE_NUMBERS) {
    for (const value of [min, max]) t.ok(decode({ ...RIGHT[op], [field]: value }), `${op} ${field} ${value}`)
    for (const value of [min - 1, max + 1, min + 0.5, null, `${min}`, true, [min], {}]) {
      t.equal(decode({ ...RIGHT[op], [field]: value }), undefined, `${op} ${field} ${JSON.stringify(value)}`)
    }
  }
})

t.test('a text is a text and no longer than its limit', async t => {
  for (const [op, field, lengthMax] of TEXTS) {
    t.ok(decode({ ...RIGHT[op], [field]: 'x'.repeat(lengthMax) }), `${op} ${field}`)
    for (const value of ['x'.repeat(lengthMax + 1), 1, null, ['x'], {}]) {
      t.equal(decode({ ...RIGHT[op], [field]: value }), undefined, `${op} ${field}`)
    }
  }
})

t.test('endpoints, tags and codes look as they must', async t => {
  for (const [op, field, right, wrong] of PATTERNS) {
    for (const value of right) t.ok(decode({ ...RIGHT[op], [field]: value }), `${op} ${field} ${value}`)
    for (const value of [...wrong, 1, null, ['0123456789abcdef']]) {
      t.equal(decode({ ...RIGHT[op], [field]: value }), undefined, `${op} ${field} ${JSON.stringify(value)}`)
    }
  }
})

t.test('there are 0 to 32 drivers, each with a name', async t => {
  for (const drivers of [[], new Array(32).fill('x'.repeat(256))]) t.ok(decode({ ...RIGHT.open, drivers }))
  for (const drivers of ['shm', {}, null, [1], ['shm', null], new Array(33).fill('x'), ['x'.repeat(257)]]) {
    t.equal(decode({ ...RIGHT.open, drivers }), undefined, JSON.stringify(drivers).slice(0, 20))
  }
})

t.test('whether a tag is right is true or false', async t => {
  for (const isTagRight of [true, false]) t.ok(decode({ ...RIGHT.mapped, isTagRight }))
  for (const isTagRight of [0, 1, 'true', null]) t.equal(decode({ ...RIGHT.mapped, isTagRight }), undefined)
  for (const isReadOnly of [true, false]) t.ok(decode({ ...RIGHT.mapped, isReadOnly }))
  for (const isReadOnly of [0, 1, 'true', null]) t.equal(decode({ ...RIGHT.mapped, isReadOnly }), undefined)
})

t.test('what is no message is none, whatever it is', async t => {
  const lines = [
    '',
    ' ',
    '{',
    '[]',
    'null',
    '1',
    '"bye"',
    '{}',
    '[{"op":"bye"}]',
    '{"op":1}',
    '{"op":["bye"]}',
  ]
  for (const op of ['', 'OPEN', 'constructor', '__proto__', 'toString', 'hasOwnProperty'])
    lines.push(`{"op":"${op}"}`)
  for (const line of lines) t.equal(decodeControl(line), undefined, line)
})

t.test('the longest message fits into a line', async t => {
  const open = { ...RIGHT.open, from: 'x'.repeat(256), drivers: new Array(32).fill('x'.repeat(256)) }
  t.ok(JSON.stringify(open).length <= LINE_MAX)
})
