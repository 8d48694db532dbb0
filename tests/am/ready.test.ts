/** What `ready` waits for: what it says of a request, and what becomes of that request, agree. */
import t, { type Test } from 'tap'
import { UNDELIVERABLE } from '../../am/undeliverable.ts'
import { NO_CREDIT, NO_RESOURCE, openLoopbackPair } from '../../nic/index.ts'
import { RING_SIZE_MIN } from '../../nic/ring/ring-layout.ts'
import { settle } from '../support/channels.ts'
import {
  EndpointSide,
  openEndpointPair,
  returnsOf,
  settleAll,
  toPeer,
  withoutOneSided,
} from '../support/endpoint-channels.ts'
import { drain, patterned } from '../support/frames.ts'
import { block } from '../support/messages.ts'

const SINK = 5
const ECHO = 10
const ANSWER = 20

/** A sender that is refused after every readiness would ask for ever. */
function assertReadyIsTrue(t: Test, side: EndpointSide, send: () => number): void {
  const isReady = side.channel.isReady
  const status = send()
  t.equal(
    isReady,
    status === 0,
    isReady ? `it is ready, and answers ${status}` : 'it is not ready, and takes it',
  )
}

t.test('ready means that the same request succeeds: without credit', async t => {
  const [a, b] = openEndpointPair({ credits: 1 })
  b.group.setHandler(SINK, () => {})
  const send = (): number => a.send(SINK)
  assertReadyIsTrue(t, a, send)
  t.equal(send(), NO_CREDIT)
  assertReadyIsTrue(t, a, send)
  settle(a, b)
  assertReadyIsTrue(t, a, send)
})

for (const [name, payload] of [
  ['short', undefined],
  ['medium', Buffer.alloc(60_000)],
] as const) {
  t.test(`ready means that the same ${name} request succeeds: while an answer waits for room`, async t => {
    const [a, b] = openEndpointPair({ ringSize: 2 ** 20 })
    a.group.setHandler(ECHO, message => message.replyMedium(ANSWER, Buffer.alloc(50_000)))
    b.send(ECHO)
    // There is room, but not for the answer.
    while (a.end.hasRoom(50_000)) fillOnce(a)
    a.group.poll()
    t.equal(a.end.hasRoom(1000), true)
    const send = (): number => a.send(SINK, [], payload)
    t.equal(send(), NO_RESOURCE)
    assertReadyIsTrue(t, a, send)
    drain(b.end)
    a.group.poll()
    assertReadyIsTrue(t, a, send)
  })
}

for (const [name, isOneSided, length] of [
  ['that travels in its message', false, 60_000],
  ['in parts', false, 300_000],
  ['by one-sided access', true, 300_000],
] as const) {
  t.test(`ready means that the same long message succeeds: one ${name}`, async t => {
    const [near, far] = openLoopbackPair()
    // Whatever the longest medium message is.
    const a = new EndpointSide(isOneSided ? near : withoutOneSided(near), { mediumMax: 10 })
    const b = new EndpointSide(far, { segment: 2 ** 20 })
    const memory = isOneSided ? a.end.importKey(b.channel.shareSegment() as Uint8Array) : undefined
    const mapping = toPeer(0n, { length: 2 ** 20, memory })
    const send = (): number => a.sendLong(SINK, Buffer.alloc(length), 0, mapping)
    block(a.end)
    t.equal(send(), NO_RESOURCE)
    assertReadyIsTrue(t, a, send)
    for (let frames = 0; frames < 1000 && !a.channel.isReady; frames++)
      b.end.poll({ handleFrame: () => {} }, 1)
    t.equal(a.channel.isReady, true)
    assertReadyIsTrue(t, a, send)
  })
}

t.test(
  'ready means that the same request succeeds: while and after a long message is sent in parts',
  async t => {
    const [near, far] = openLoopbackPair(RING_SIZE_MIN)
    const a = new EndpointSide(withoutOneSided(near))
    const b = new EndpointSide(far, { segment: 2 ** 20 })
    b.group.setHandler(SINK, () => {})
    const send = (): number => a.send(SINK)
    t.equal(a.sendLong(SINK, patterned(500_000, 1), 5), 0)
    t.equal(send(), NO_RESOURCE)
    assertReadyIsTrue(t, a, send)
    settleAll(a, b)
    assertReadyIsTrue(t, a, send)
    t.ok(b.segment.subarray(5, 500_005).equals(patterned(500_000, 1)))
  },
)

t.test(
  'ready means that the same request succeeds: when the peer went in the middle of a long message',
  async t => {
    const [near] = openLoopbackPair(RING_SIZE_MIN)
    const a = new EndpointSide(withoutOneSided(near))
    const returned = returnsOf(a)
    t.equal(a.sendLong(SINK, patterned(500_000, 1), 0), 0)
    a.channel.lose(UNDELIVERABLE.PEER_DEAD)
    assertReadyIsTrue(t, a, () => a.send(SINK, [1]))
    a.group.poll()
    t.match(returned, [
      { reason: 'PEER_DEAD', words: [] },
      { reason: 'PEER_DEAD', words: [1] },
    ])
    t.ok(returned[0]?.payload.equals(patterned(500_000, 1)))
  },
)

function fillOnce(side: EndpointSide): void {
  side.end.reserve(1000)
  side.end.commit(1000)
}
