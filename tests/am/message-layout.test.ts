import t from 'tap'
import * as layout from '../../am/message-layout.ts'

const { FLAG, KIND_MASK, REGION_SIZE, TAG_SIZE, WORDS_MAX } = layout
const KINDS = Object.entries(layout).filter(([name]) => /^KIND_(?!MASK)/.test(name)) as [string, number][]

t.test('there are eight kinds, which fill their three bits', async t => {
  t.strictSame(
    KINDS.map(([, kind]) => kind).sort(),
    Array.from({ length: KIND_MASK + 1 }, (_, kind) => kind),
  )
})

t.test('the fields of a head do not overlap and fill 32 bits', async t => {
  const fields = [
    KIND_MASK,
    FLAG,
    layout.WORD_COUNT_MASK << layout.WORD_COUNT_SHIFT,
    layout.HANDLER_MASK << layout.HANDLER_SHIFT,
    layout.SLOT_MASK << layout.SLOT_SHIFT,
  ]
  t.equal(
    fields.reduce((sum, field) => sum + (field >>> 0), 0),
    2 ** 32 - 1,
  )
  t.equal(
    fields.reduce((all, field) => all | field, 0),
    -1,
  )
})

t.test('a head is what its fields are', async t => {
  const heads: [kind: number, words: number, handler: number, slot: number, head: number][] = [
    [0, 0, 0, 0, 0],
    [layout.KIND_REQUEST, 4, 4, 1, 0x0001_0440],
    [layout.KIND_BOUNCE | FLAG, 8, 255, 0x7ffe, 0x7ffe_ff8f],
    [layout.KIND_PART | FLAG, 0, 0, layout.NO_SLOT, 0xffff_000d],
  ]
  for (const [kind, words, handler, slot, head] of heads) {
    t.equal(layout.encodeHead(kind, words, handler, slot) >>> 0, head)
  }
})

t.test('a run is its first slot and its count, and is never negative', async t => {
  t.equal(layout.encodeRun(5, 1), 0x0001_0005)
  t.equal(layout.encodeRun(layout.CREDITS_LIMIT - 1, layout.CREDITS_LIMIT), 0x7fff_7ffe)
  t.equal(layout.RUN_FIRST_MASK + 1, 1 << layout.RUN_COUNT_SHIFT)
})

t.test('no slot has the number that means none', async t => {
  t.ok(layout.NO_SLOT > layout.CREDITS_LIMIT)
  t.equal(layout.NO_SLOT & layout.SLOT_MASK, layout.NO_SLOT)
})

t.test('what lies between head and words depends on kind and flag', async t => {
  const sizes: Record<string, [plain: number, flagged: number]> = {
    KIND_REQUEST: [0, TAG_SIZE],
    KIND_REPLY: [0, REGION_SIZE],
    KIND_CREDIT: [0, 0],
    KIND_RETURN: [0, 0],
    KIND_LONG: [REGION_SIZE, TAG_SIZE + REGION_SIZE],
    KIND_PART: [REGION_SIZE, TAG_SIZE + REGION_SIZE],
    KIND_GET: [REGION_SIZE, TAG_SIZE + REGION_SIZE],
    KIND_BOUNCE: [0, 0],
  }
  for (const [name, kind] of KINDS) {
    t.strictSame([layout.EXTRA_SIZES[kind], layout.EXTRA_SIZES[kind | FLAG]], sizes[name], name)
  }
})

t.test('a header ends on a multiple of 8, with all of its words, and never beyond its maximum', async t => {
  for (const extra of new Set(layout.EXTRA_SIZES)) {
    for (let words = 0; words <= WORDS_MAX; words++) {
      const least = layout.HEAD_SIZE + extra + 4 * words
      const size = layout.headerSize(words, extra)
      t.ok(size % 8 === 0 && size >= least && size < least + 8, `${words} words, ${extra} bytes: ${size}`)
      t.ok(size <= layout.HEADER_SIZE_MAX)
    }
  }
  t.equal(layout.headerSize(WORDS_MAX, TAG_SIZE + REGION_SIZE), layout.HEADER_SIZE_MAX)
})
