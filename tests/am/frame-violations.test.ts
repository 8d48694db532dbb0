/** What a peer of endpoints may do wrong, one thing after the other. */
import t from 'tap'
import {
  encodeRun,
  KIND_BOUNCE,
  KIND_CREDIT,
  KIND_GET,
  KIND_LONG,
  KIND_PART,
  KIND_REPLY,
  KIND_REQUEST,
  KIND_RETURN,
  NO_SLOT,
} from '../../am/message-layout.ts'
import { tagOf } from '../../am/tag.ts'
import { UNDELIVERABLE } from '../../am/undeliverable.ts'
import { CallLog } from '../support/endpoint-channels.ts'
import { patterned } from '../support/frames.ts'
import { openVictim, SEGMENT } from '../support/hostile-peer.ts'
import { drainMessages, sendMessage, type WireMessage } from '../support/messages.ts'

const SINK = 5
const TAG = 0x0123_4567_89ab_cdefn
const TAG_WORDS = [tagOf(TAG).low, tagOf(TAG).high] as const

type Attack = readonly [what: string, frames: readonly Partial<WireMessage>[], error: RegExp]

/** What the victim of these has sent before: slot 0 a request, slot 1 a get of 100 bytes into 200, slot 2 a call. */
const VIOLATIONS: readonly Attack[] = [
  ['a request in a slot that is none', [{ slot: 8 }], /a request without a credit/],
  ['a long message without a credit', [{ kind: KIND_LONG, slot: 8, region: [0, 0] }], /without a credit/],
  ['a get without a credit', [{ kind: KIND_GET, slot: NO_SLOT, region: [0, 0] }], /without a credit/],
  [
    'a slot used again before it came back',
    [
      { kind: KIND_REQUEST, slot: 3, handler: SINK },
      { kind: KIND_GET, slot: 3, region: [0, 0] },
    ],
    /without a credit/,
  ],
  [
    'a reply twice',
    [
      { kind: KIND_REPLY, slot: 0, handler: SINK },
      { kind: KIND_REPLY, slot: 0, handler: SINK },
    ],
    /a reply without a request/,
  ],
  [
    'a reply to what was returned',
    [
      { kind: KIND_RETURN, slot: 0, handler: UNDELIVERABLE.BAD_TAG },
      { kind: KIND_REPLY, slot: 0, handler: SINK },
    ],
    /a reply without a request/,
  ],
  [
    'a reply to what was acknowledged',
    [{ kind: KIND_REPLY, slot: 0, handler: SINK, acks: encodeRun(0, 1) }],
    /a reply without a request/,
  ],
  [
    'a return twice',
    [
      { kind: KIND_RETURN, slot: 0, handler: UNDELIVERABLE.BAD_TAG },
      { kind: KIND_RETURN, slot: 0, handler: UNDELIVERABLE.BAD_TAG },
    ],
    /slot 0 came back for reason 1/,
  ],
  ['a return for no reason', [{ kind: KIND_RETURN, slot: 0, handler: 0 }], /slot 0 came back for reason 0/],
  ['a return for reason 255', [{ kind: KIND_RETURN, slot: 0, handler: 255 }], /for reason 255/],
  ['a return of nothing', [{ kind: KIND_RETURN, slot: 5, handler: 1 }], /slot 5 came back/],
  ['a return of no slot', [{ kind: KIND_RETURN, slot: NO_SLOT, handler: 1 }], /slot 65535 came back/],
  ['a bounce of nothing', [{ kind: KIND_BOUNCE, slot: 1, handler: SINK }], /replies came back for reason 1/],
  [
    'a long reply to nothing',
    [{ kind: KIND_REPLY, slot: 5, region: [0, 0] }],
    /a long reply without a request/,
  ],
  [
    'a long reply to a get',
    [{ kind: KIND_REPLY, slot: 1, region: [0, 0] }],
    /a long reply without a request/,
  ],
  [
    'a long reply twice',
    [
      { kind: KIND_REPLY, slot: 0, handler: SINK, region: [0, 0] },
      { kind: KIND_REPLY, slot: 0, handler: SINK, region: [0, 0] },
    ],
    /a long reply without a request/,
  ],
  ['a get acknowledged', [{ kind: KIND_CREDIT, acks: encodeRun(1, 1) }], /more credits came back/],
  ['a run across a get', [{ kind: KIND_CREDIT, acks: encodeRun(0, 3) }], /more credits came back/],
  ['a run beyond what was spent', [{ kind: KIND_CREDIT, acks: encodeRun(2, 2) }], /more credits came back/],
  ['a run around the circle', [{ kind: KIND_CREDIT, acks: encodeRun(7, 2) }], /more credits came back/],
  ['the longest run', [{ kind: KIND_CREDIT, acks: -1 }], /more credits came back/],
  ['a part for nothing', [{ kind: KIND_PART, slot: 5, region: [0, 0] }], /a part of 0 bytes at 0 for slot 5/],
  [
    'a part for a slot that is none',
    [{ kind: KIND_PART, slot: 0x7fff, region: [0, 0] }],
    /a part of 0 bytes at 0 for slot 32767/,
  ],
  [
    'a part that begins behind a get',
    [{ kind: KIND_PART, slot: 1, region: [101, 0] }],
    /a part of 0 bytes at 101 for slot 1/,
  ],
  [
    'a part that ends behind a get',
    [{ kind: KIND_PART, slot: 1, region: [1, 100], payload: Buffer.alloc(100, 0xaa) }],
    /a part of 100 bytes at 1 for slot 1/,
  ],
  [
    'a part far behind a get',
    [{ kind: KIND_PART, slot: 1, region: [-1, 2], payload: Buffer.alloc(2, 0xaa) }],
    /a part of 2 bytes at 4294967295/,
  ],
  [
    'fewer bytes than the region of a part',
    [{ kind: KIND_PART, slot: NO_SLOT, region: [0, 3], payload: Buffer.alloc(2, 0xaa) }],
    /2 bytes for a region of 3/,
  ],
  [
    'more bytes than the region of a long message',
    [{ kind: KIND_LONG, slot: 0, handler: SINK, region: [0, 1], payload: Buffer.alloc(2, 0xaa) }],
    /2 bytes for a region of 1/,
  ],
  [
    'more bytes than the region of a long reply',
    [{ kind: KIND_REPLY, slot: 0, handler: SINK, region: [0, 1], payload: Buffer.alloc(2, 0xaa) }],
    /2 bytes for a region of 1/,
  ],
]

for (const [what, frames, error] of VIOLATIONS) {
  t.test(`${what}: the peer is cut off, and nothing is written`, async t => {
    const { wire, victim } = openVictim()
    const call = new CallLog()
    let returned = 0
    victim.group.setHandler(0, () => returned++)
    victim.group.setHandler(SINK, () => {})
    victim.send(SINK)
    victim.get(SINK, 0, 100, 200)
    victim.send(SINK, [], undefined, call)
    for (const frame of frames) sendMessage(wire, frame)
    sendMessage(wire, {
      kind: KIND_LONG,
      slot: 7,
      handler: SINK,
      region: [0, 4],
      payload: Buffer.alloc(4, 0xaa),
    })
    t.doesNotThrow(() => victim.group.poll())
    t.match(victim.owner.errors, [{ code: 'ERR_AM_PROTOCOL_VIOLATION', message: error }])
    t.equal(victim.channel.state, 'gone')
    victim.group.poll()
    t.equal(victim.channel.creditsLeft, 8, 'all that was under way came back')
    t.equal(call.outcomes.length, 1)
    t.ok(returned > 0)
    t.ok(victim.segment.equals(patterned(SEGMENT, 1)), 'what follows is not handled')
    t.ok(victim.isGuardWhole)
  })
}

const OUTSIDE: readonly (readonly [offset: number, length: number])[] = [
  [0, SEGMENT + 1],
  [1, SEGMENT],
  [SEGMENT, 1],
  [SEGMENT + 1, 0],
  [-1, 0],
  [-1, 1],
  [-1, -1],
  [0, -1],
  [0x7fff_ffff, 0x7fff_ffff],
  [-0x8000_0000, -0x8000_0000],
  // Whose sum is 0 in 32 bits.
  [-SEGMENT, SEGMENT],
]

t.test('a region that is not in the segment is returned, whatever is to be done with it', async t => {
  for (const region of OUTSIDE) {
    const { wire, victim } = openVictim({ longMax: 2 ** 32 - 1 })
    victim.group.setHandler(SINK, () => t.fail('the handler ran'))
    const payload = Buffer.alloc(region[1] > 0 && region[1] < 2000 ? region[1] : 0, 0xaa)
    sendMessage(wire, { kind: KIND_LONG, slot: 0, handler: SINK, region, payload })
    sendMessage(wire, { kind: KIND_LONG, slot: 1, handler: SINK, region })
    sendMessage(wire, { kind: KIND_GET, slot: 2, region })
    sendMessage(wire, { kind: KIND_PART, slot: NO_SLOT, region, payload })
    victim.group.poll()
    const reason = UNDELIVERABLE.OUT_OF_BOUNDS
    t.match(drainMessages(wire), [
      { kind: KIND_RETURN, slot: 0, handler: reason },
      { kind: KIND_RETURN, slot: 1, handler: reason },
      { kind: KIND_RETURN, slot: 2, handler: reason },
    ])
    t.equal(victim.channel.state, 'open')
    t.ok(victim.segment.equals(patterned(SEGMENT, 1)), `${region}`)
    t.ok(victim.isGuardWhole)
  }
})

t.test('a long reply and its parts outside the segment write nothing, and the reply goes back', async t => {
  for (const region of OUTSIDE) {
    const { wire, victim } = openVictim({ longMax: 2 ** 32 - 1 })
    victim.group.setHandler(SINK, () => t.fail('the handler ran'))
    const payload = Buffer.alloc(region[1] > 0 && region[1] < 2000 ? region[1] : 0, 0xaa)
    victim.send(SINK)
    sendMessage(wire, { kind: KIND_PART, slot: 0, region, payload })
    sendMessage(wire, { kind: KIND_REPLY, slot: 0, handler: SINK, region, payload, words: [7] })
    victim.group.poll()
    const [, bounce] = drainMessages(wire)
    t.match(bounce, { kind: KIND_BOUNCE, slot: UNDELIVERABLE.OUT_OF_BOUNDS, handler: SINK, words: [7] })
    t.ok(bounce?.payload.equals(payload))
    t.equal(victim.channel.creditsLeft, 8)
    t.ok(victim.segment.equals(patterned(SEGMENT, 1)), `${region}`)
    t.ok(victim.isGuardWhole)
  }
})

t.test('regions at the very ends of the segment are served', async t => {
  const { wire, victim } = openVictim()
  let handled = 0
  victim.group.setHandler(SINK, () => handled++)
  const last = [SEGMENT - 1, 1] as const
  sendMessage(wire, { kind: KIND_LONG, slot: 0, handler: SINK, region: [SEGMENT, 0] })
  sendMessage(wire, { kind: KIND_LONG, slot: 1, handler: SINK, region: last, payload: Buffer.of(0xaa) })
  sendMessage(wire, { kind: KIND_PART, slot: NO_SLOT, region: [0, 1], payload: Buffer.of(0xbb) })
  sendMessage(wire, { kind: KIND_LONG, slot: 2, handler: SINK, region: [0, SEGMENT] })
  sendMessage(wire, { kind: KIND_GET, slot: 3, region: last })
  sendMessage(wire, { kind: KIND_GET, slot: 4, region: [SEGMENT, 0] })
  victim.group.poll()
  t.equal(handled, 3)
  t.strictSame([victim.segment[0], victim.segment[SEGMENT - 1]], [0xbb, 0xaa])
  t.match(drainMessages(wire), [
    { kind: KIND_PART, slot: 3, region: [0, 1], payload: Buffer.of(0xaa) },
    { kind: KIND_REPLY, slot: 3 },
    { kind: KIND_REPLY, slot: 4 },
  ])
  t.ok(victim.isGuardWhole)
})

t.test('parts of a get land within what was asked for, in any order and as often as they come', async t => {
  const { wire, victim } = openVictim()
  let handled = 0
  victim.group.setHandler(SINK, message => {
    handled++
    t.strictSame([message.offset, message.length], [200, 100])
  })
  victim.get(SINK, 0, 100, 200)
  const part = (offset: number, payload: Buffer): void => {
    sendMessage(wire, { kind: KIND_PART, slot: 0, region: [offset, payload.length], payload })
  }
  part(99, Buffer.alloc(1, 0xcc))
  part(0, Buffer.alloc(100, 0xaa))
  part(40, Buffer.alloc(60, 0xbb))
  part(100, Buffer.alloc(0))
  sendMessage(wire, { kind: KIND_REPLY, slot: 0, handler: 77, words: [1], payload: Buffer.alloc(9) })
  victim.group.poll()
  t.equal(handled, 1)
  const expected = patterned(SEGMENT, 1).fill(0xaa, 200, 240).fill(0xbb, 240, 300)
  t.ok(victim.segment.equals(expected))
})

t.test('who does not show the tag writes nothing, reads nothing, and reaches no handler', async t => {
  const { wire, victim } = openVictim({ tag: TAG })
  for (let index = 0; index < 256; index++) {
    victim.group.setHandler(index, () => t.fail(`handler ${index} ran`))
  }
  const wrong = [
    undefined,
    [0, 0],
    [TAG_WORDS[1], TAG_WORDS[0]],
    [TAG_WORDS[0], 0],
    [TAG_WORDS[0], ~TAG_WORDS[1]],
  ]
  for (const tag of wrong as readonly (readonly [number, number] | undefined)[]) {
    const payload = Buffer.alloc(10, 0xaa)
    sendMessage(wire, { kind: KIND_REQUEST, slot: 0, handler: SINK, tag, payload })
    sendMessage(wire, { kind: KIND_LONG, slot: 1, handler: SINK, tag, region: [0, 10], payload })
    sendMessage(wire, { kind: KIND_LONG, slot: 2, handler: SINK, tag, region: [0, 10] })
    sendMessage(wire, { kind: KIND_GET, slot: 3, tag, region: [0, 10] })
    sendMessage(wire, { kind: KIND_PART, slot: NO_SLOT, tag, region: [0, 10], payload })
    victim.group.poll()
    const reason = UNDELIVERABLE.BAD_TAG
    t.match(
      drainMessages(wire),
      [0, 1, 2, 3].map(slot => ({ kind: KIND_RETURN, slot, handler: reason })),
    )
  }
  t.ok(victim.segment.equals(patterned(SEGMENT, 1)))
  sendMessage(wire, { kind: KIND_BOUNCE, slot: UNDELIVERABLE.PEER_DEAD, handler: SINK, words: [1] })
  victim.group.poll()
  t.match(victim.owner.errors, [{ code: 'ERR_AM_PROTOCOL_VIOLATION' }])
})

t.test('who shows the tag is served', async t => {
  const { wire, victim } = openVictim({ tag: TAG })
  let handled = 0
  victim.group.setHandler(SINK, () => handled++)
  const payload = Buffer.alloc(10, 0xaa)
  const tag = TAG_WORDS
  sendMessage(wire, { kind: KIND_REQUEST, slot: 0, handler: SINK, tag, words: [1], payload })
  sendMessage(wire, { kind: KIND_LONG, slot: 1, handler: SINK, tag, region: [0, 10], payload })
  sendMessage(wire, { kind: KIND_PART, slot: NO_SLOT, tag, region: [10, 10], payload })
  sendMessage(wire, { kind: KIND_GET, slot: 2, tag, region: [15, 10] })
  victim.group.poll()
  t.equal(handled, 2)
  const bytes = Buffer.concat([payload.subarray(5), patterned(SEGMENT, 1).subarray(20, 25)])
  t.match(drainMessages(wire), [
    { kind: KIND_PART, slot: 2, region: [0, 10], payload: bytes },
    { kind: KIND_REPLY, slot: 2 },
  ])
})
