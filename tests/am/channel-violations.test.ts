/** What a peer of sockets may do wrong. */
import t from 'tap'
import { HANDLER_COUNT } from '../../am/index.ts'
import {
  encodeHead,
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
import { BROKEN, openLoopbackPair } from '../../nic/index.ts'
import { FRAME_STAMP, HEAD_WORD, RING_SIZE_MIN } from '../../nic/ring/ring-layout.ts'
import { openChannelPair, openSide, sendRequest } from '../support/channels.ts'
import { drain, patterned, sendFrame } from '../support/frames.ts'
import { block, encodeMessage, sendMessage } from '../support/messages.ts'
import { seededRandom } from '../support/random.ts'
import { sendControlOf } from '../support/ring-memory.ts'

const SINK = 5
const ECHO = 10
const ANSWER = 20

/** A frame of any length that begins with a head, if there is room for one. */
function frame(head: number, length = 8): Buffer {
  const bytes = Buffer.alloc(length)
  if (length >= 4) bytes.writeInt32LE(head, 0)
  return bytes
}

t.test('what the peer does wrong breaks the channel, and its owner is told', async t => {
  const wrongs: [what: string, wrong: Buffer, message: RegExp][] = [
    ['an empty frame', frame(0, 0), /a frame of 0 bytes/],
    ['a frame of three bytes', frame(0, 3), /a frame of 3 bytes/],
    ['a head without acks', frame(encodeHead(KIND_REQUEST, 0, SINK, 0), 7), /a frame of 7 bytes/],
    [
      'a head cut short',
      frame(encodeHead(KIND_REQUEST, 1, SINK, 0), 8),
      /a message head of 0x510 in 8 bytes/,
    ],
    ['words that are not there', frame(encodeHead(KIND_REQUEST, 8, SINK, 0), 32), /a message head/],
    ['nine words', frame(encodeHead(KIND_REQUEST, 9, SINK, 0), 64), /a message head/],
    ['fifteen words', frame(encodeHead(KIND_REQUEST, 15, SINK, 0), 80), /a message head/],
    ['a return', encodeMessage({ kind: KIND_RETURN, handler: 1 }), /a message head of 0x103/],
    ['a long message', encodeMessage({ kind: KIND_LONG, region: [0, 0] }), /a message head of 0x4/],
    ['a part', encodeMessage({ kind: KIND_PART, region: [0, 0] }), /a message head of 0x5/],
    ['a get', encodeMessage({ kind: KIND_GET, region: [0, 0] }), /a message head of 0x6/],
    ['a bounce', encodeMessage({ kind: KIND_BOUNCE }), /a message head of 0x7/],
    ['a long reply', encodeMessage({ kind: KIND_REPLY, region: [0, 0] }), /a message head of 0x9/],
    ['a reply', encodeMessage({ kind: KIND_REPLY, handler: SINK }), /a reply without a request/],
    ['a slot too high', encodeMessage({ handler: SINK, slot: 64 }), /a request without a credit/],
    ['the highest slot', encodeMessage({ handler: SINK, slot: NO_SLOT - 1 }), /a request without a credit/],
    ['a one-way request to no handler', encodeMessage({ handler: 99, slot: NO_SLOT }), /a one-way request/],
    [
      'a one-way request with a tag',
      encodeMessage({ handler: SINK, slot: NO_SLOT, tag: [7, 0] }),
      /a one-way request/,
    ],
    [
      'a credit too many',
      encodeMessage({ kind: KIND_CREDIT, acks: encodeRun(0, 1) }),
      /more credits came back/,
    ],
    [
      'a slot that is none',
      encodeMessage({ handler: SINK, acks: encodeRun(64, 1) }),
      /more credits came back/,
    ],
    ['all credits too many', encodeMessage({ handler: SINK, acks: -1 }), /more credits came back/],
    ['half a run', encodeMessage({ kind: KIND_CREDIT, payload: Buffer.alloc(3) }), /credits in 3 bytes/],
    [
      'too many runs',
      encodeMessage({ kind: KIND_CREDIT, payload: Buffer.alloc(260) }),
      /credits in 260 bytes/,
    ],
    [
      'a run among many that was not spent',
      encodeMessage({ kind: KIND_CREDIT, payload: Buffer.of(0, 0, 0, 0, 5, 0, 1, 0) }),
      /more credits came back than were spent/,
    ],
  ]
  for (const [what, wrong, message] of wrongs) {
    const [near, far] = openLoopbackPair(RING_SIZE_MIN)
    const b = openSide(far)
    let calls = 0
    b.group.setHandler(SINK, () => calls++)
    sendFrame(near, wrong)
    sendMessage(near, { handler: SINK })
    t.doesNotThrow(() => b.group.poll(), what)
    t.equal(b.channel.state, 'broken', what)
    t.equal(calls, 0, 'what follows is not handled')
    t.match(b.owner.errors, [{ code: 'ERR_AM_PROTOCOL_VIOLATION', message, cause: { message } }])
    t.equal(b.end.state, 'closed')
    t.equal(sendRequest(b.channel, SINK), BROKEN)
    t.equal(b.channel.progress(10), BROKEN)
    t.equal(b.owner.errors.length, 1, 'the owner is told once')
  }
})

t.test(
  'a reply to a handler that is not there breaks the channel, as this side made the request',
  async t => {
    const [near, far] = openLoopbackPair(RING_SIZE_MIN)
    const b = openSide(far)
    sendRequest(b.channel, SINK)
    sendMessage(near, { kind: KIND_REPLY, handler: 99, slot: 0 })
    b.group.poll()
    t.match(b.owner.errors, [{ message: /a reply to handler 99, which is not there/ }])
  },
)

t.test('a reply frees its slot, and a second one for it breaks the channel', async t => {
  const [near, far] = openLoopbackPair(RING_SIZE_MIN)
  const b = openSide(far, 2)
  const answers: number[] = []
  b.group.setHandler(ANSWER, message => answers.push(message.word(0)))
  sendRequest(b.channel, SINK)
  sendRequest(b.channel, SINK)
  sendMessage(near, { kind: KIND_REPLY, handler: ANSWER, slot: 1, words: [7] })
  b.group.poll()
  t.strictSame(answers, [7])
  t.equal(b.channel.creditsLeft, 1)
  sendMessage(near, { kind: KIND_REPLY, handler: ANSWER, slot: 1, words: [8] })
  b.group.poll()
  t.strictSame(answers, [7])
  t.match(b.owner.errors, [{ message: /a reply without a request/ }])
})

t.test('a request without a credit breaks the channel', async t => {
  for (const credits of [1, 4]) {
    const [near, far] = openLoopbackPair(RING_SIZE_MIN)
    const b = openSide(far, credits)
    let calls = 0
    b.group.setHandler(SINK, () => calls++)
    for (let i = 0; i <= credits; i++) sendMessage(near, { handler: SINK, slot: i % credits })
    b.group.poll()
    t.equal(calls, credits)
    t.match(b.owner.errors, [{ code: 'ERR_AM_PROTOCOL_VIOLATION', message: /a request without a credit/ }])
  }
})

t.test('a request without a credit breaks the channel also while replies wait for room', async t => {
  const [near, far] = openLoopbackPair(RING_SIZE_MIN)
  const b = openSide(far, 4)
  b.group.setHandler(ECHO, message => message.reply(ANSWER))
  block(b.end)
  for (let slot = 0; slot < 4; slot++) sendMessage(near, { handler: ECHO, slot })
  b.group.poll()
  t.equal(b.channel.state, 'open')
  sendMessage(near, { handler: ECHO, slot: 0 })
  b.group.poll()
  t.match(b.owner.errors, [{ message: /a request without a credit/ }])
})

t.test('a peer that scribbles over the stamp of its next frame breaks the channel', async t => {
  const [a, b] = openChannelPair()
  a.end.sendWords[FRAME_STAMP / 4] = 12
  b.group.poll()
  t.equal(b.channel.state, 'broken')
  const cause = { code: 'ERR_NIC_PROTOCOL_VIOLATION', message: /frame at 0 is stamped 12/ }
  t.match(b.owner.errors, [{ code: 'ERR_AM_PROTOCOL_VIOLATION', cause }])
})

t.test('a peer that scribbles over the head of our ring breaks the channel', async t => {
  const [a] = openChannelPair()
  while (sendRequest(a.channel, SINK, [], patterned(4000, 1)) === 0) {}
  sendControlOf(a.end)[HEAD_WORD] = 4
  t.equal(sendRequest(a.channel, SINK, [], patterned(4000, 1)), BROKEN)
  a.group.poll()
  t.equal(a.channel.state, 'broken')
  const cause = { code: 'ERR_NIC_PROTOCOL_VIOLATION', message: /head moved from 0 to 4/ }
  t.match(a.owner.errors, [{ code: 'ERR_AM_PROTOCOL_VIOLATION', cause }])
})

t.test('a peer that scribbles over the head while we wait for room breaks the channel', async t => {
  const [a] = openChannelPair()
  while (sendRequest(a.channel, SINK, [], patterned(4000, 1)) === 0) {}
  a.owner.wanted = 4000
  t.equal(a.channel.arm(), true, 'a sleeps until there is room')
  sendControlOf(a.end)[HEAD_WORD] = 4
  // Either finds the violation: arm by refusing to sleep, progress by polling. A poller alternates them.
  for (let turn = 0; turn < 3; turn++) {
    a.channel.arm()
    a.group.poll()
  }
  t.equal(a.channel.state, 'broken')
  t.match(a.owner.errors, [{ code: 'ERR_AM_PROTOCOL_VIOLATION' }])
})

t.test('frames of noise break the channel or are handled, and nothing is ever thrown', async t => {
  const random = seededRandom(t)
  let broken = 0
  for (let round = 0; round < 2000; round++) {
    const [near, far] = openLoopbackPair(RING_SIZE_MIN)
    const credits = random.pick([1, 8, 64])
    const b = openSide(far, credits)
    for (let index = 0; index < HANDLER_COUNT; index += 2) {
      b.group.setHandler(index, message => {
        message.word(7)
        message.copy()
        if (message.isRequest && random.chance(0.5))
          message.replyMedium(ANSWER, message.payload().subarray(0, 8))
      })
    }
    for (let i = random.within(1, 30); i > 0; i--) {
      const noise = random.bytes(random.within(0, 80))
      // Most of the heads are nearly right: noise alone seldom gets past the first check.
      if (noise.length >= 8 && random.chance(0.8)) {
        const kind = random.pick([KIND_REQUEST, KIND_REQUEST, KIND_REPLY, KIND_CREDIT, random.within(0, 15)])
        const slot = random.within(0, credits - 1)
        noise.writeInt32LE(encodeHead(kind, random.within(0, 9), random.within(0, 255) & ~1, slot), 0)
        if (random.chance(0.8)) noise.writeInt32LE(0, 4)
      }
      sendFrame(near, noise)
    }
    b.group.poll()
    if (b.channel.state === 'broken') broken++
    if (b.owner.errors.length !== (b.channel.state === 'broken' ? 1 : 0)) t.fail(`round ${round}`)
    drain(near)
  }
  t.ok(broken > 100 && broken < 2000, `${broken} of 2000 broke`)
})
