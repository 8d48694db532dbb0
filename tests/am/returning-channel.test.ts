/** What a channel of endpoints does with messages that cannot be delivered, and with what must wait. */
import t from 'tap'
import { FRAME_PART_MAX } from '../../am/bulk-transfers.ts'
import { KIND_REPLY, KIND_REQUEST, KIND_RETURN } from '../../am/message-layout.ts'
import { UNDELIVERABLE } from '../../am/undeliverable.ts'
import { openLoopbackPair } from '../../nic/index.ts'
import { RING_SIZE_MIN } from '../../nic/ring/ring-layout.ts'
import { settle } from '../support/channels.ts'
import {
  CallLog,
  EndpointSide,
  openEndpointPair,
  returnsOf,
  settleAll,
  toPeer,
  withoutOneSided,
} from '../support/endpoint-channels.ts'
import { patterned } from '../support/frames.ts'
import { drainMessages, sendMessage } from '../support/messages.ts'

const SINK = 5
const ECHO = 10
const ANSWER = 20

t.test('a request comes back with all that it was sent with', async t => {
  const [a, b] = openEndpointPair({ mediumMax: 100 })
  const returned = returnsOf(a)
  a.send(99, [1, -2, 3, -4, 5, -6, 7, -8], patterned(100, 1))
  a.send(98)
  settle(a, b)
  t.match(returned, [
    {
      reason: 'NO_SUCH_HANDLER',
      handler: 99,
      words: [1, -2, 3, -4, 5, -6, 7, -8],
      destination: 0,
      isRequest: false,
    },
    { reason: 'NO_SUCH_HANDLER', handler: 98, words: [] },
  ])
  t.ok(returned[0]?.payload.equals(patterned(100, 1)))
  t.equal(a.channel.creditsLeft, 8)
})

t.test('a returned message may not be replied to', async t => {
  const [a, b] = openEndpointPair()
  let error: unknown
  a.group.setHandler(0, message => {
    try {
      message.reply(ANSWER)
    } catch (thrown) {
      error = thrown
    }
  })
  a.send(99)
  settle(a, b)
  t.match(error, { code: 'ERR_AM_TOKEN', message: /a returned message cannot be replied to/ })
})

t.test('without a handler 0 what comes back is let go, and its credit is free', async t => {
  const [a, b] = openEndpointPair({ credits: 1 })
  for (let i = 0; i < 5; i++) {
    t.equal(a.send(99), 0)
    settle(a, b)
  }
  t.equal(a.channel.counts.returned, 5)
})

t.test('a message with another tag comes back, and no handler runs', async t => {
  for (const [tag, shown] of [
    [0n, 1n],
    [1n, 0n],
    [1n, 1n << 32n],
    [(1n << 64n) - 1n, (1n << 64n) - 2n],
  ] as const) {
    const [near, far] = openLoopbackPair()
    const a = new EndpointSide(near)
    const b = new EndpointSide(far, { tag, segment: 100 })
    b.group.setHandler(SINK, () => t.fail('the handler ran'))
    const returned = returnsOf(a)
    const mapping = toPeer(shown)
    a.channel.send(mapping, SINK, { count: 0 } as never, undefined, undefined)
    a.sendLong(SINK, patterned(10, 1), 0, mapping)
    a.get(SINK, 0, 0, 0, mapping)
    settle(a, b)
    t.strictSame(
      returned.map(({ reason }) => reason),
      ['BAD_TAG', 'BAD_TAG', 'BAD_TAG'],
    )
    t.ok(b.segment.equals(Buffer.alloc(100)))
  }
})

t.test('a message with the right tag is handled, whatever kind it is', async t => {
  for (const tag of [0n, 1n, 1n << 63n]) {
    const [near, far] = openLoopbackPair()
    const a = new EndpointSide(near, { segment: 100 })
    const b = new EndpointSide(withoutOneSided(far), { tag, segment: 300_000 })
    let handled = 0
    for (const side of [a, b]) side.group.setHandler(SINK, () => handled++)
    returnsOf(a)
    const mapping = toPeer(tag)
    a.channel.send(mapping, SINK, { count: 0 } as never, patterned(20, 1), undefined)
    a.sendLong(SINK, patterned(100, 2), 0, mapping)
    a.sendLong(SINK, patterned(200_000, 3), 100, mapping)
    settleAll(a, b)
    a.get(SINK, 50, 100, 0, mapping)
    settleAll(a, b)
    t.equal(handled, 4)
    t.ok(a.segment.equals(Buffer.concat([patterned(100, 2).subarray(50), patterned(50, 3)])))
    t.ok(b.segment.subarray(100, 200_100).equals(patterned(200_000, 3)))
  }
})

t.test('a payload longer than the peer takes comes back', async t => {
  const [near, far] = openLoopbackPair()
  const a = new EndpointSide(near)
  const b = new EndpointSide(far, { mediumMax: 99, longMax: 100, segment: 1000 })
  b.group.setHandler(SINK, () => {})
  const returned = returnsOf(a)
  a.send(SINK, [], Buffer.alloc(99))
  a.send(SINK, [], Buffer.alloc(100))
  a.sendLong(SINK, Buffer.alloc(100), 0)
  a.sendLong(SINK, Buffer.alloc(101), 0)
  a.get(SINK, 0, 101, 0)
  settle(a, b)
  t.strictSame(
    returned.map(({ reason, payload }) => [reason, payload.length]),
    [
      ['TOO_LONG', 100],
      ['TOO_LONG', 101],
      ['TOO_LONG', 0],
    ],
  )
})

t.test('a payload longer than a frame of the driver comes back, and never gets to the driver', async t => {
  const [a, b] = openEndpointPair({ ringSize: RING_SIZE_MIN })
  b.group.setHandler(SINK, () => {})
  const returned = returnsOf(a)
  t.equal(a.send(SINK, [1], Buffer.alloc(a.channel.mediumMax)), 0)
  t.equal(a.send(SINK, [2], Buffer.alloc(a.channel.mediumMax + 1)), 0)
  settle(a, b)
  t.match(returned, [{ reason: 'TOO_LONG', words: [2] }])
})

t.test('a reply without a handler goes back to handler 0 of the replier', async t => {
  const [a, b] = openEndpointPair()
  b.group.setHandler(ECHO, message => message.replyMedium(message.word(0), message.payload(), 7, -8))
  const returned = returnsOf(b)
  for (const handler of [99, 1]) a.send(ECHO, [handler], patterned(50, handler))
  settle(a, b)
  t.match(returned, [
    { reason: 'NO_SUCH_HANDLER', handler: 99, words: [7, -8], destination: 0, isRequest: false },
    { reason: 'NO_SUCH_HANDLER', handler: 1, words: [7, -8] },
  ])
  t.ok(returned[0]?.payload.equals(patterned(50, 99)))
  t.equal(a.channel.creditsLeft, 8)
})

t.test('a reply longer than the requester takes goes back; its call has no reply', async t => {
  const [near, far] = openLoopbackPair()
  const a = new EndpointSide(near, { mediumMax: 49 })
  const b = new EndpointSide(far)
  b.group.setHandler(ECHO, message => message.replyMedium(ANSWER, patterned(message.word(0), 1)))
  let answers = 0
  a.group.setHandler(ANSWER, () => answers++)
  const returned = returnsOf(b)
  const call = new CallLog()
  a.send(ECHO, [49])
  a.send(ECHO, [50])
  a.send(ECHO, [50], undefined, call)
  settle(a, b)
  t.equal(answers, 1)
  t.match(returned, [{ reason: 'TOO_LONG' }, { reason: 'TOO_LONG' }])
  t.strictSame(call.outcomes, ['no reply'])
})

t.test('a reply longer than this side sends is refused', async t => {
  const [a, b] = openEndpointPair({ mediumMax: 100 })
  b.group.setHandler(ECHO, message => {
    t.throws(() => message.replyMedium(ANSWER, Buffer.alloc(101)), { code: 'ERR_AM_ARGUMENT' })
    message.replyMedium(ANSWER, Buffer.alloc(100))
  })
  const call = new CallLog()
  a.send(ECHO, [], undefined, call)
  settle(a, b)
  t.strictSame(call.outcomes, ['reply'])
})

for (const length of [10, FRAME_PART_MAX, FRAME_PART_MAX + 1, 1_000_000]) {
  t.test(`a long reply of ${length} bytes without a handler goes back`, async t => {
    const [near, far] = openLoopbackPair()
    const a = new EndpointSide(near, { segment: length + 10 })
    const b = new EndpointSide(withoutOneSided(far))
    const answer = patterned(length, 3)
    b.group.setHandler(ECHO, message => message.replyLong(message.word(0), answer, message.word(1), 7))
    a.group.setHandler(ANSWER, () => t.fail('it was handled'))
    const returned = returnsOf(b)
    const call = new CallLog()
    a.send(ECHO, [99, 0])
    a.send(ECHO, [ANSWER, 11])
    a.send(ECHO, [ANSWER, 11], undefined, call)
    settleAll(a, b)
    t.match(returned, [
      { reason: 'NO_SUCH_HANDLER', handler: 99, words: [7] },
      { reason: 'OUT_OF_BOUNDS', handler: ANSWER, words: [7] },
      { reason: 'OUT_OF_BOUNDS', handler: ANSWER, words: [7] },
    ])
    // What came before its reply does not go back with it.
    const kept = length <= FRAME_PART_MAX ? answer : Buffer.alloc(0)
    for (const { payload } of returned) t.ok(payload.equals(kept), `${payload.length} bytes`)
    t.strictSame(call.outcomes, ['no reply'])
    t.equal(a.channel.creditsLeft, 8)
    t.ok(a.isGuardWhole)
  })
}

t.test('a reply comes back no more often than there were replies', async t => {
  const [near, far] = openLoopbackPair()
  const b = new EndpointSide(far)
  const returned = returnsOf(b)
  b.group.setHandler(ECHO, message => message.reply(ANSWER))
  const bounce = { kind: 7, slot: UNDELIVERABLE.NO_SUCH_HANDLER, handler: ANSWER }
  sendMessage(near, { kind: KIND_REQUEST, handler: ECHO })
  sendMessage(near, bounce)
  b.group.poll()
  t.equal(returned.length, 1)
  t.equal(b.channel.state, 'open')
  sendMessage(near, bounce)
  b.group.poll()
  t.equal(returned.length, 1)
  t.equal(b.channel.state, 'gone')
  t.match(b.owner.errors, [{ message: /replies came back/ }])
})

t.test('once the peer is gone everything that was under way comes back, and all that follows', async t => {
  for (const [reason, number] of Object.entries(UNDELIVERABLE)) {
    const [a] = openEndpointPair({ segment: 100 })
    const returned = returnsOf(a)
    const call = new CallLog()
    a.send(SINK, [1], patterned(30, 1))
    a.send(SINK, [2], undefined, call)
    a.sendLong(SINK, patterned(40, 2), 0)
    a.get(SINK, 0, 50, 0)
    a.channel.lose(number)
    t.equal(a.channel.isOver, false, 'there is something to hand back')
    a.group.poll()
    t.strictSame(call.outcomes, [reason])
    t.match(returned, [
      { reason, handler: SINK, words: [1], destination: 0 },
      { reason, handler: SINK, words: [] },
      { reason, handler: SINK, words: [] },
    ])
    t.ok(returned[0]?.payload.equals(patterned(30, 1)))
    t.ok(returned[1]?.payload.equals(patterned(40, 2)))
    t.equal(a.channel.isOver, true)
    t.equal(a.channel.creditsLeft, 8)

    t.equal(a.send(SINK, [3]), 0)
    t.equal(returned.length, 3, 'not before the next turn')
    a.group.poll()
    t.match(returned.slice(3), [{ reason, words: [3] }])
  }
})

t.test('what the peer sent before it went is handled first', async t => {
  const [a, b] = openEndpointPair()
  const order: string[] = []
  b.group.setHandler(ECHO, message => message.reply(ANSWER))
  a.group.setHandler(ANSWER, () => order.push('answer'))
  a.group.setHandler(0, message => order.push(`${message.reason}`))
  a.send(ECHO)
  b.group.poll()
  a.send(ECHO)
  a.channel.expectEnd(UNDELIVERABLE.PEER_CLOSED)
  a.group.poll()
  a.group.poll()
  a.group.poll()
  t.strictSame(order, ['answer', 'PEER_CLOSED'])
})

t.test('a channel that is closed tells those who wait for a reply', async t => {
  const [a] = openEndpointPair()
  const call = new CallLog()
  a.send(SINK, [], undefined, call)
  a.channel.close()
  t.strictSame(call.outcomes, ['closed'])
})

t.test('a call whose handler does not reply is told when its credit comes back', async t => {
  const [a, b] = openEndpointPair({ credits: 1 })
  b.group.setHandler(SINK, () => {})
  const call = new CallLog()
  a.send(SINK, [], undefined, call)
  settle(a, b)
  t.strictSame(call.outcomes, ['no reply'])
})

t.test('acknowledgements that are few go alone after a lull', async t => {
  const [a, b] = openEndpointPair({ credits: 64 })
  b.group.setHandler(SINK, () => {})
  a.send(SINK)
  b.group.poll()
  a.group.poll()
  t.equal(a.channel.outstanding, 1)
  for (let turn = 0; turn < 20; turn++) b.group.poll()
  a.group.poll()
  t.equal(a.channel.outstanding, 0)
})

t.test('acknowledgements that are few go before a side sleeps', async t => {
  const [a, b] = openEndpointPair({ credits: 64 })
  b.group.setHandler(SINK, () => {})
  a.send(SINK)
  b.group.poll()
  t.equal(b.channel.arm(), true)
  a.group.poll()
  t.equal(a.channel.outstanding, 0)
})

t.test('long messages, gets and long replies are whole over a queue whose frames are small', async t => {
  const [near, far] = openLoopbackPair(RING_SIZE_MIN)
  const a = new EndpointSide(withoutOneSided(near), { segment: 100_000 })
  const b = new EndpointSide(withoutOneSided(far), { segment: 100_000 })
  let done = 0
  for (const side of [a, b]) side.group.setHandler(SINK, () => done++)
  b.group.setHandler(ECHO, message => message.replyLong(SINK, patterned(70_000, 2), 30_000))
  for (const length of [8000, 8192, 9000, 66_000]) {
    done = 0
    b.segment.fill(0)
    t.equal(a.sendLong(SINK, patterned(length, length), 1), 0)
    settleAll(a, b)
    t.ok(b.segment.subarray(1, length + 1).equals(patterned(length, length)), `${length} bytes`)
    a.get(SINK, 1, length, 10)
    settleAll(a, b)
    t.ok(a.segment.subarray(10, length + 10).equals(patterned(length, length)), `a get of ${length} bytes`)
    a.send(ECHO)
    settleAll(a, b)
    t.ok(a.segment.subarray(30_000).equals(patterned(70_000, 2)), 'a long reply')
    t.equal(done, 3)
  }
  t.strictSame([a.isGuardWhole, b.isGuardWhole], [true, true])
})

t.test('a get that is acknowledged and not answered breaks the rules, and comes back', async t => {
  const [near, far] = openLoopbackPair()
  const b = new EndpointSide(withoutOneSided(far), { segment: 100 })
  const returned = returnsOf(b)
  b.group.setHandler(SINK, () => t.fail('it is complete'))
  b.get(SINK, 0, 10, 0)
  sendMessage(near, { kind: KIND_RETURN, acks: 0x0001_0000, slot: 1, handler: 1 })
  b.group.poll()
  b.group.poll()
  t.equal(b.channel.state, 'gone')
  t.match(returned, [{ reason: 'PEER_DEAD', handler: SINK }])
})

t.test('a get whose handler has gone comes back', async t => {
  const [near, far] = openLoopbackPair()
  const b = new EndpointSide(withoutOneSided(far), { segment: 100 })
  const returned = returnsOf(b)
  b.get(SINK, 0, 10, 0)
  const [get] = drainMessages(near)
  t.match(get, { kind: 6, region: [0, 10], slot: 0 })
  sendMessage(near, { kind: KIND_REPLY, slot: 0 })
  b.group.poll()
  t.match(returned, [{ reason: 'NO_SUCH_HANDLER', handler: SINK }])
  t.equal(b.channel.creditsLeft, 8)
})
