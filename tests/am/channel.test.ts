import t from 'tap'
import { CREDITS_LIMIT, Endpoint, HANDLER_COUNT } from '../../am/index.ts'
import { encodeHead, KIND_CREDIT, KIND_REPLY, KIND_REQUEST } from '../../am/message-layout.ts'
import { BROKEN, CLOSED, NO_CREDIT, NO_RESOURCE, openLoopbackPair } from '../../nic/index.ts'
import { HEAD_WORD, RING_SIZE_MIN, TAIL_WORD } from '../../nic/ring/ring-layout.ts'
import { OwnerLog, openChannelPair, openSide, type Side, settle } from '../support/channels.ts'
import { drain, fill, patterned, sendFrame } from '../support/frames.ts'
import { seededRandom } from '../support/random.ts'
import { sendControlOf } from '../support/ring-memory.ts'

const SINK = 5
const ECHO = 10
const ANSWER = 20

/** One message as a peer of any morals would put it on the wire. */
function frame(head: number, length = 8): Buffer {
  const bytes = Buffer.alloc(length)
  if (length >= 4) bytes.writeInt32LE(head, 0)
  return bytes
}

t.test('handler indices are whole numbers within 0..255', async t => {
  const endpoint = new Endpoint({ progress: 'manual' })
  for (const index of [-1, HANDLER_COUNT, 1.5, Number.NaN, Number.POSITIVE_INFINITY]) {
    t.throws(() => endpoint.setHandler(index, () => {}), { code: 'ERR_AM_ARGUMENT' }, `${index}`)
  }
  for (const index of [0, HANDLER_COUNT - 1]) t.doesNotThrow(() => endpoint.setHandler(index, () => {}))
})

t.test('the highest handler index is reached, and no other', async t => {
  const [a, b] = openChannelPair()
  const called: number[] = []
  for (let index = 0; index < HANDLER_COUNT; index++) {
    b.endpoint.setHandler(index, message => called.push(message.handler))
  }
  for (const index of [255, 0, 128]) a.channel.request(index, [])
  settle(a, b)
  t.strictSame(called, [255, 0, 128])
})

t.test('a handler may be replaced and removed, also from within a handler', async t => {
  const [a, b] = openChannelPair()
  const called: string[] = []
  b.endpoint.setHandler(SINK, () => {
    called.push('first')
    b.endpoint.setHandler(SINK, () => called.push('second'))
  })
  a.channel.request(SINK, [])
  a.channel.request(SINK, [])
  settle(a, b)
  b.endpoint.setHandler(SINK, undefined)
  a.channel.request(SINK, [])
  settle(a, b)
  t.strictSame(called, ['first', 'second'])
  t.equal(b.channel.state, 'broken')
})

t.test('a number of credits that cannot be is ERR_AM_ARGUMENT', async t => {
  for (const credits of [0, -1, 1.5, CREDITS_LIMIT + 1, Number.NaN]) {
    const [near] = openLoopbackPair(RING_SIZE_MIN)
    const endpoint = new Endpoint({ progress: 'manual' })
    t.throws(() => endpoint.attach(near, { credits }), { code: 'ERR_AM_ARGUMENT' }, `${credits}`)
  }
})

t.test('a request that is built in place arrives as it was built', async t => {
  const [a, b] = openChannelPair()
  const received: (number | Buffer)[] = []
  b.endpoint.setHandler(SINK, message => received.push(message.word(0), message.word(1), message.copy()))
  const at = a.channel.reserveRequest(SINK, 2, 500)
  a.channel.putWord(0, -7)
  a.channel.putWord(1, 8)
  patterned(123, 1).copy(a.channel.sendBytes, at)
  a.channel.commit(123)
  settle(a, b)
  t.strictSame(received, [-7, 8, patterned(123, 1)])
})

t.test(
  'an argument that can never be right is ERR_AM_ARGUMENT, and costs neither credit nor channel',
  async t => {
    const attempts: [what: string, attempt: (a: Side) => void][] = [
      ['nine words', a => a.channel.request(SINK, [1, 2, 3, 4, 5, 6, 7, 8, 9])],
      ['handler 256', a => a.channel.request(256, [])],
      ['handler -1', a => a.channel.request(-1, [])],
      ['handler 1.5', a => a.channel.request(1.5, [])],
      ['nine words in place', a => a.channel.reserveRequest(SINK, 9, 0)],
      ['a payload longer than a frame', a => a.channel.requestMedium(SINK, new Uint8Array(9000), [])],
    ]
    for (const [what, attempt] of attempts) {
      const [a, b] = openChannelPair()
      b.endpoint.setHandler(SINK, () => {})
      t.throws(() => attempt(a), { code: 'ERR_AM_ARGUMENT' }, what)
      t.equal(a.channel.creditsLeft, 64, what)
      settle(a, b)
      t.equal(b.channel.state, 'open', `${what}: nothing was sent that breaks the peer`)
    }
  },
)

t.test('requests are refused with NO_CREDIT at 0, and accepted again once credits came back', async t => {
  for (const credits of [1, 2, 3, 64]) {
    const [a, b] = openChannelPair({ credits })
    let count = 0
    b.endpoint.setHandler(SINK, () => count++)
    for (let i = 0; i < credits; i++) t.equal(a.channel.request(SINK, [i]), 0)
    t.equal(a.channel.creditsLeft, 0)
    t.equal(a.channel.request(SINK, []), NO_CREDIT)
    t.equal(a.channel.requestMedium(SINK, patterned(8, 1), []), NO_CREDIT)
    a.endpoint.poll()
    t.equal(a.channel.request(SINK, []), NO_CREDIT, 'the peer has done nothing yet')
    settle(a, b)
    t.equal(count, credits)
    t.equal(a.channel.creditsLeft, credits)
    t.equal(a.channel.request(SINK, []), 0)
  }
})

t.test('a refusal for want of room costs no credit', async t => {
  const [a, b] = openChannelPair()
  let count = 0
  b.endpoint.setHandler(SINK, () => count++)
  let sent = 0
  while (a.channel.requestMedium(SINK, patterned(8000, 1), []) === 0) sent++
  t.equal(a.channel.requestMedium(SINK, patterned(8000, 1), []), NO_RESOURCE)
  t.equal(a.channel.creditsLeft, 64 - sent)
  settle(a, b)
  t.equal(count, sent)
  t.equal(a.channel.requestMedium(SINK, patterned(8000, 1), []), 0)
})

t.test('credits ride on what goes the other way, and go alone once half of them are owed', async t => {
  const [a, b] = openChannelPair({ credits: 8 })
  a.endpoint.setHandler(SINK, () => {})
  b.endpoint.setHandler(SINK, () => {})
  for (let i = 0; i < 3; i++) a.channel.request(SINK, [])
  b.endpoint.poll()
  t.equal(a.endpoint.poll(), 0, 'three of eight are not worth a frame')
  t.equal(a.channel.creditsLeft, 5)
  b.channel.request(SINK, [])
  t.equal(a.endpoint.poll(), 1)
  t.equal(a.channel.creditsLeft, 8, 'three came with a request the other way')

  for (let i = 0; i < 4; i++) a.channel.request(SINK, [])
  b.endpoint.poll()
  t.equal(a.endpoint.poll(), 1, 'four of eight go alone')
  t.equal(a.channel.creditsLeft, 8)
})

for (const credits of [1, 64]) {
  t.test(
    `two sides that flood each other with requests and replies never stop, with credits: ${credits}`,
    async t => {
      const random = seededRandom(t)
      const [a, b] = openChannelPair({ credits })
      const TOTAL = 10_000
      const sides = [a, b] as const
      const tallies = sides.map(side => {
        const tally = { sent: 0, answered: 0, handled: 0, wrong: 0 }
        side.endpoint.setHandler(ECHO, message => {
          if (message.word(0) !== tally.handled++) tally.wrong++
          message.replyMedium(ANSWER, message.payload(), message.word(0))
        })
        side.endpoint.setHandler(ANSWER, message => {
          if (!message.payload().every(byte => byte === (message.word(0) & 0xff))) tally.wrong++
          tally.answered++
        })
        return tally
      })
      // The bound is no time: a deadlock is a round in which nobody gets anywhere.
      let idleRounds = 0
      while (tallies.some(tally => tally.answered < TOTAL) && idleRounds < 10) {
        let moved = 0
        sides.forEach((side, i) => {
          const tally = tallies[i] as (typeof tallies)[number]
          while (tally.sent < TOTAL) {
            const payload = Buffer.alloc(random.chance(0.05) ? 8000 : random.within(0, 200), tally.sent)
            if (side.channel.requestMedium(ECHO, payload, [tally.sent]) !== 0) break
            tally.sent++
            moved++
          }
          moved += side.endpoint.poll(random.within(1, 100))
        })
        idleRounds = moved === 0 ? idleRounds + 1 : 0
      }
      const expected = { sent: TOTAL, answered: TOTAL, handled: TOTAL, wrong: 0 }
      t.strictSame(tallies, [expected, expected])
      settle(a, b)
      t.strictSame([a.channel.creditsLeft * 2 > credits, b.channel.creditsLeft * 2 > credits], [true, true])
    },
  )
}

t.test('replies that find no room wait in a queue, in order, and keep their credits back', async t => {
  const [a, b] = openChannelPair({ credits: 4 })
  b.endpoint.setHandler(ECHO, message =>
    message.replyMedium(ANSWER, patterned(100, message.word(0)), message.word(0)),
  )
  const answers: number[] = []
  a.endpoint.setHandler(ANSWER, message => {
    t.ok(message.copy().equals(patterned(100, message.word(0))))
    answers.push(message.word(0))
  })
  // What fills the way back is not b's to send again: credits that return nothing.
  fillWith(b, encodeHead(KIND_CREDIT, 0, 0, 0))
  for (let i = 0; i < 4; i++) a.channel.request(ECHO, [i])
  t.equal(b.endpoint.poll(), 4)
  t.equal(b.channel.arm(), true, 'b sleeps until there is room')
  t.equal(a.channel.creditsLeft, 0)
  settle(a, b)
  t.strictSame(answers, [0, 1, 2, 3])
  t.equal(a.channel.creditsLeft, 3, 'the last credit rides on what comes next')
})

function fillWith(side: Side, head: number): void {
  while (sendFrame(side.end, frame(head, 1000)) === 0) {}
  while (sendFrame(side.end, frame(head)) === 0) {}
}

t.test('what the peer does wrong breaks the channel, and its owner is told', async t => {
  const wrongs: [what: string, wrong: Buffer, message: RegExp][] = [
    ['an empty frame', frame(0, 0), /a frame of 0 bytes/],
    ['a frame of three bytes', frame(0, 3), /a frame of 3 bytes/],
    [
      'a head cut short',
      frame(encodeHead(KIND_REQUEST, 0, SINK, 0), 4),
      /a message head of 0x500 in 4 bytes/,
    ],
    ['words that are not there', frame(encodeHead(KIND_REQUEST, 8, SINK, 0), 32), /a message head/],
    ['nine words', frame(encodeHead(KIND_REQUEST, 9, SINK, 0), 64), /a message head/],
    ['fifteen words', frame(encodeHead(KIND_REQUEST, 15, SINK, 0), 64), /a message head/],
    ['a kind that does not exist', frame(encodeHead(3, 0, SINK, 0)), /a message head of 0x503/],
    ['an unknown handler', frame(encodeHead(KIND_REQUEST, 0, 99, 0)), /no handler 99/],
    ['a reply to an unknown handler', frame(encodeHead(KIND_REPLY, 0, 99, 0)), /no handler 99/],
    ['a credit too many', frame(encodeHead(KIND_CREDIT, 0, 0, 1)), /more credits came back than were spent/],
    ['all credits too many', frame(encodeHead(KIND_REPLY, 0, SINK, 0xffff)), /more credits came back/],
  ]
  for (const [what, wrong, message] of wrongs) {
    const [near, far] = openLoopbackPair(RING_SIZE_MIN)
    const b = openSide(far)
    let calls = 0
    b.endpoint.setHandler(SINK, () => calls++)
    sendFrame(near, wrong)
    sendFrame(near, frame(encodeHead(KIND_REQUEST, 0, SINK, 0)))
    t.doesNotThrow(() => b.endpoint.poll(), what)
    t.equal(b.channel.state, 'broken', what)
    t.equal(calls, 0, 'what follows is not handled')
    t.match(b.owner.errors, [{ code: 'ERR_AM_PROTOCOL_VIOLATION', message, cause: { message } }])
    t.equal(b.end.state, 'closed')
    t.equal(b.channel.request(SINK, []), BROKEN)
    t.equal(b.channel.progress(10), BROKEN)
    t.equal(b.owner.errors.length, 1, 'the owner is told once')
  }
})

t.test('a request without a credit breaks the channel', async t => {
  for (const credits of [1, 4]) {
    const [near, far] = openLoopbackPair(RING_SIZE_MIN)
    const b = openSide(far, credits)
    let calls = 0
    b.endpoint.setHandler(SINK, () => calls++)
    for (let i = 0; i <= credits; i++) sendFrame(near, frame(encodeHead(KIND_REQUEST, 0, SINK, 0)))
    b.endpoint.poll()
    t.equal(calls, credits)
    t.match(b.owner.errors, [{ code: 'ERR_AM_PROTOCOL_VIOLATION', message: /a request without a credit/ }])
  }
})

t.test('a request without a credit breaks the channel also while replies wait for room', async t => {
  const [near, far] = openLoopbackPair(RING_SIZE_MIN)
  const b = openSide(far, 4)
  b.endpoint.setHandler(ECHO, message => message.reply(ANSWER))
  fillWith(b, encodeHead(KIND_CREDIT, 0, 0, 0))
  for (let i = 0; i < 4; i++) sendFrame(near, frame(encodeHead(KIND_REQUEST, 0, ECHO, 0)))
  b.endpoint.poll()
  t.equal(b.channel.state, 'open')
  sendFrame(near, frame(encodeHead(KIND_REQUEST, 0, ECHO, 0)))
  b.endpoint.poll()
  t.match(b.owner.errors, [{ message: /a request without a credit/ }])
})

t.test('a peer that scribbles over the tail of its ring breaks the channel', async t => {
  const [a, b] = openChannelPair()
  sendControlOf(a.end)[TAIL_WORD] = 12
  b.endpoint.poll()
  t.equal(b.channel.state, 'broken')
  const cause = { code: 'ERR_NIC_PROTOCOL_VIOLATION', message: /tail 12 is impossible/ }
  t.match(b.owner.errors, [{ code: 'ERR_AM_PROTOCOL_VIOLATION', cause }])
})

t.test('a peer that scribbles over the head of our ring breaks the channel', async t => {
  const [a] = openChannelPair()
  while (a.channel.requestMedium(SINK, patterned(4000, 1), []) === 0) {}
  sendControlOf(a.end)[HEAD_WORD] = 4
  t.equal(a.channel.requestMedium(SINK, patterned(4000, 1), []), BROKEN)
  a.endpoint.poll()
  t.equal(a.channel.state, 'broken')
  const cause = { code: 'ERR_NIC_PROTOCOL_VIOLATION', message: /head moved from 0 to 4/ }
  t.match(a.owner.errors, [{ code: 'ERR_AM_PROTOCOL_VIOLATION', cause }])
})

t.test('a peer that scribbles over the head while we wait for room breaks the channel', async t => {
  const [a] = openChannelPair()
  while (a.channel.requestMedium(SINK, patterned(4000, 1), []) === 0) {}
  a.owner.wanted = 4000
  t.equal(a.channel.arm(), true, 'a sleeps until there is room')
  sendControlOf(a.end)[HEAD_WORD] = 4
  // Whoever finds the violation: arm by refusing to sleep, progress by looking. A poller does these in turns.
  for (let turn = 0; turn < 3; turn++) {
    a.channel.arm()
    a.endpoint.poll()
  }
  t.equal(a.channel.state, 'broken')
  t.match(a.owner.errors, [{ code: 'ERR_AM_PROTOCOL_VIOLATION' }])
})

t.test('frames of noise break the channel or are handled, and nothing is ever thrown', async t => {
  const random = seededRandom(t)
  let broken = 0
  for (let round = 0; round < 2000; round++) {
    const [near, far] = openLoopbackPair(RING_SIZE_MIN)
    const b = openSide(far, random.pick([1, 8, 64]))
    for (let index = 0; index < HANDLER_COUNT; index += 2) {
      b.endpoint.setHandler(index, message => {
        message.word(7)
        message.copy()
        if (message.isRequest && random.chance(0.5))
          message.replyMedium(ANSWER, message.payload().subarray(0, 8))
      })
    }
    for (let i = random.within(1, 30); i > 0; i--) {
      const noise = random.bytes(random.within(0, 80))
      // Half of the heads are nearly right: noise alone seldom gets past the first check.
      if (noise.length >= 4 && random.chance(0.8)) {
        const head = encodeHead(random.within(0, 3), random.within(0, 9), random.within(0, 255) & ~1, 0)
        noise.writeInt32LE(head, 0)
      }
      sendFrame(near, noise)
    }
    b.endpoint.poll()
    if (b.channel.state === 'broken') broken++
    if (b.owner.errors.length !== (b.channel.state === 'broken' ? 1 : 0)) t.fail(`round ${round}`)
    drain(near)
  }
  t.ok(broken > 100 && broken < 2000, `${broken} of 2000 broke`)
})

t.test('a handler that throws loses its own message only', async t => {
  const [a, b] = openChannelPair({ credits: 4 })
  const handled: number[] = []
  b.endpoint.setHandler(SINK, message => {
    handled.push(message.word(0))
    if (message.word(0) === 1) throw new Error('from the handler')
  })
  for (let i = 0; i < 4; i++) a.channel.request(SINK, [i])
  t.throws(() => b.endpoint.poll(), { message: 'from the handler' })
  settle(a, b)
  t.strictSame(handled, [0, 1, 2, 3])
  t.equal(a.channel.creditsLeft, 4, 'its credit came back too')
})

t.test('the owner is told after each poll', async t => {
  const [a, b] = openChannelPair()
  b.endpoint.setHandler(SINK, () => {})
  b.endpoint.poll()
  a.channel.request(SINK, [])
  b.endpoint.poll()
  t.equal(b.owner.progressCount, 2)
})

t.test('a closed channel refuses with CLOSED, sends no reply, and closing again is nothing', async t => {
  const [a, b] = openChannelPair()
  b.endpoint.setHandler(ECHO, message => {
    b.endpoint.detach(b.channel)
    message.reply(ANSWER)
  })
  a.channel.request(ECHO, [])
  a.channel.request(ECHO, [])
  t.doesNotThrow(() => b.endpoint.poll())
  b.channel.close()
  t.equal(b.channel.state, 'closed')
  t.equal(b.end.state, 'closed')
  t.equal(b.channel.request(SINK, []), CLOSED)
  t.equal(b.channel.requestMedium(SINK, patterned(8, 1), []), CLOSED)
  t.equal(b.channel.reserveRequest(SINK, 0, 0), CLOSED)
  t.equal(b.channel.progress(10), CLOSED)
  t.strictSame(b.owner.errors, [])
  t.equal(a.endpoint.poll(), 0, 'nothing came back')
})

t.test('a closed endpoint has closed its channels and takes no new ones', async t => {
  const [a, b] = openChannelPair()
  const [near] = openLoopbackPair(RING_SIZE_MIN)
  a.endpoint.close()
  t.equal(a.channel.state, 'closed')
  t.equal(a.endpoint.poll(), 0)
  t.throws(() => a.endpoint.attach(near, { owner: new OwnerLog() }), { code: 'ERR_AM_CLOSED' })
  t.equal(b.channel.state, 'open')
})

t.test('arm refuses while a message waits, and waits for room while a reply does', async t => {
  const [a, b] = openChannelPair()
  b.endpoint.setHandler(ECHO, message => message.reply(ANSWER))
  a.endpoint.setHandler(ANSWER, () => {})
  t.equal(b.channel.arm(), true)
  a.channel.request(ECHO, [])
  t.equal(b.channel.arm(), false)
  fill(b.end, 1000)
  drain(b.end)
  t.equal(b.channel.arm(), true)
})
