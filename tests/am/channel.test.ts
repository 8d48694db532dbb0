import t from 'tap'
import { ChannelGroup, CREDITS_LIMIT, HANDLER_COUNT } from '../../am/index.ts'
import { KIND_REQUEST, KIND_RETURN } from '../../am/message-layout.ts'
import { UNDELIVERABLE } from '../../am/undeliverable.ts'
import { CLOSED, NO_CREDIT, NO_RESOURCE, openLoopbackPair } from '../../nic/index.ts'
import { RING_SIZE_MIN } from '../../nic/ring/ring-layout.ts'
import { OwnerLog, openChannelPair, openSide, type Side, sendRequest, settle } from '../support/channels.ts'
import { drain, fill, patterned } from '../support/frames.ts'
import { block, drainMessages, sendMessage } from '../support/messages.ts'
import { seededRandom } from '../support/random.ts'

const SINK = 5
const ECHO = 10
const ANSWER = 20

t.test('handler indices are whole numbers within 0..255', async t => {
  const group = new ChannelGroup({ progress: 'manual' })
  for (const index of [-1, HANDLER_COUNT, 1.5, Number.NaN, Number.POSITIVE_INFINITY]) {
    t.throws(() => group.setHandler(index, () => {}), { code: 'ERR_AM_ARGUMENT' }, `${index}`)
  }
  for (const index of [0, HANDLER_COUNT - 1]) t.doesNotThrow(() => group.setHandler(index, () => {}))
})

t.test('the highest handler index is reached, and no other', async t => {
  const [a, b] = openChannelPair()
  const called: number[] = []
  for (let index = 0; index < HANDLER_COUNT; index++) {
    b.group.setHandler(index, message => called.push(message.handler))
  }
  for (const index of [255, 1, 128]) sendRequest(a.channel, index)
  settle(a, b)
  t.strictSame(called, [255, 1, 128])
})

t.test('a handler may be replaced and removed, also from within a handler', async t => {
  const [a, b] = openChannelPair()
  const called: string[] = []
  b.group.setHandler(SINK, () => {
    called.push('first')
    b.group.setHandler(SINK, () => called.push('second'))
  })
  sendRequest(a.channel, SINK)
  sendRequest(a.channel, SINK)
  settle(a, b)
  b.group.setHandler(SINK, undefined)
  sendRequest(a.channel, SINK)
  b.group.poll()
  t.strictSame(called, ['first', 'second'])
  const back = drainMessages(a.end).at(-1)
  t.match(back, { kind: KIND_RETURN, handler: UNDELIVERABLE.NO_SUCH_HANDLER })
  t.equal(b.channel.state, 'open')
})

t.test(
  'a request for a handler that is not there is returned with its slot, and the channel goes on',
  async t => {
    for (const handler of [0, 99, 255]) {
      const [near, far] = openLoopbackPair(RING_SIZE_MIN)
      const b = openSide(far, 4)
      const called: number[] = []
      // Index 0 is for returned messages only: no request may name it.
      b.group.setHandler(0, () => called.push(0))
      b.group.setHandler(SINK, () => called.push(SINK))
      sendMessage(near, { kind: KIND_REQUEST, handler, slot: 2, words: [1], payload: patterned(20, 1) })
      sendMessage(near, { kind: KIND_REQUEST, handler: SINK, slot: 3 })
      b.group.poll()
      t.strictSame(called, [SINK])
      const [back, ...rest] = drainMessages(near)
      t.match(back, { kind: KIND_RETURN, handler: UNDELIVERABLE.NO_SUCH_HANDLER, slot: 2, words: [] })
      t.equal(back?.payload.length, 0)
      t.strictSame(rest, [])
      // The RETURN gave the slot back.
      sendMessage(near, { kind: KIND_REQUEST, handler: SINK, slot: 2 })
      b.group.poll()
      t.strictSame(called, [SINK, SINK])
      t.strictSame(b.owner.errors, [])
    }
  },
)

t.test('a request with a tag is returned: plain channels have none', async t => {
  const [near, far] = openLoopbackPair(RING_SIZE_MIN)
  const b = openSide(far)
  b.group.setHandler(SINK, () => t.fail('it ran'))
  for (const [slot, tag] of [[0, 0] as const, [1, 2] as const].entries()) {
    sendMessage(near, { kind: KIND_REQUEST, handler: SINK, slot, tag })
  }
  b.group.poll()
  t.match(drainMessages(near), [
    { kind: KIND_RETURN, handler: UNDELIVERABLE.BAD_TAG, slot: 0 },
    { kind: KIND_RETURN, handler: UNDELIVERABLE.BAD_TAG, slot: 1 },
  ])
})

t.test('a number of credits that cannot be is ERR_AM_ARGUMENT', async t => {
  for (const credits of [0, -1, 1.5, CREDITS_LIMIT + 1, Number.NaN]) {
    const [near] = openLoopbackPair(RING_SIZE_MIN)
    const group = new ChannelGroup({ progress: 'manual' })
    t.throws(
      () => group.attach(near, { credits, owner: new OwnerLog() }),
      { code: 'ERR_AM_ARGUMENT' },
      `${credits}`,
    )
  }
})

t.test('a request that is built in place arrives as it was built', async t => {
  const [a, b] = openChannelPair()
  const received: (number | Buffer)[] = []
  b.group.setHandler(SINK, message => received.push(message.word(0), message.word(1), message.copy()))
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
      ['nine words', a => sendRequest(a.channel, SINK, [1, 2, 3, 4, 5, 6, 7, 8, 9])],
      ['handler 256', a => sendRequest(a.channel, 256)],
      ['handler -1', a => sendRequest(a.channel, -1, [])],
      ['handler 1.5', a => sendRequest(a.channel, 1.5, [])],
      ['nine words in place', a => a.channel.reserveRequest(SINK, 9, 0)],
      ['a payload longer than a frame', a => sendRequest(a.channel, SINK, [], Buffer.alloc(9000))],
    ]
    for (const [what, attempt] of attempts) {
      const [a, b] = openChannelPair()
      b.group.setHandler(SINK, () => {})
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
    b.group.setHandler(SINK, () => count++)
    for (let i = 0; i < credits; i++) t.equal(sendRequest(a.channel, SINK, [i]), 0)
    t.equal(a.channel.creditsLeft, 0)
    t.equal(sendRequest(a.channel, SINK), NO_CREDIT)
    t.equal(sendRequest(a.channel, SINK, [], patterned(8, 1)), NO_CREDIT)
    a.group.poll()
    t.equal(sendRequest(a.channel, SINK), NO_CREDIT, 'the peer has done nothing yet')
    settle(a, b)
    t.equal(count, credits)
    t.equal(a.channel.creditsLeft, credits)
    t.equal(sendRequest(a.channel, SINK), 0)
  }
})

t.test('a refusal for want of room costs no credit', async t => {
  const [a, b] = openChannelPair()
  let count = 0
  b.group.setHandler(SINK, () => count++)
  let sent = 0
  while (sendRequest(a.channel, SINK, [], patterned(8000, 1)) === 0) sent++
  t.equal(sendRequest(a.channel, SINK, [], patterned(8000, 1)), NO_RESOURCE)
  t.equal(a.channel.creditsLeft, 64 - sent)
  settle(a, b)
  t.equal(count, sent)
  t.equal(sendRequest(a.channel, SINK, [], patterned(8000, 1)), 0)
})

t.test('credits ride on what goes the other way, and go alone once half of them are owed', async t => {
  const [a, b] = openChannelPair({ credits: 8 })
  a.group.setHandler(SINK, () => {})
  b.group.setHandler(SINK, () => {})
  for (let i = 0; i < 3; i++) sendRequest(a.channel, SINK)
  b.group.poll()
  t.equal(a.group.poll(), 0, 'three of eight are not worth a frame')
  t.equal(a.channel.creditsLeft, 5)
  sendRequest(b.channel, SINK)
  t.equal(a.group.poll(), 1)
  t.equal(a.channel.creditsLeft, 8, 'three came with a request the other way')

  for (let i = 0; i < 4; i++) sendRequest(a.channel, SINK)
  b.group.poll()
  t.equal(a.group.poll(), 1, 'four of eight go alone')
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
        side.group.setHandler(ECHO, message => {
          if (message.word(0) !== tally.handled++) tally.wrong++
          message.replyMedium(ANSWER, message.payload(), message.word(0))
        })
        side.group.setHandler(ANSWER, message => {
          if (!message.payload().every(byte => byte === (message.word(0) & 0xff))) tally.wrong++
          tally.answered++
        })
        return tally
      })
      // The bound is no time: a deadlock is a round without progress on either side.
      let idleRounds = 0
      while (tallies.some(tally => tally.answered < TOTAL) && idleRounds < 10) {
        let moved = 0
        sides.forEach((side, i) => {
          const tally = tallies[i] as (typeof tallies)[number]
          while (tally.sent < TOTAL) {
            const payload = Buffer.alloc(random.chance(0.05) ? 8000 : random.within(0, 200), tally.sent)
            if (sendRequest(side.channel, ECHO, [tally.sent], payload) !== 0) break
            tally.sent++
            moved++
          }
          moved += side.group.poll(random.within(1, 100))
        })
        idleRounds = moved === 0 ? idleRounds + 1 : 0
      }
      const expected = { sent: TOTAL, answered: TOTAL, handled: TOTAL, wrong: 0 }
      t.strictSame(tallies, [expected, expected])
      settle(a, b)
      t.strictSame([a.channel.creditsLeft, b.channel.creditsLeft], [credits, credits])
    },
  )
}

t.test('replies that find no room wait in a queue, in order, and keep their credits back', async t => {
  const [a, b] = openChannelPair({ credits: 4 })
  b.group.setHandler(ECHO, message =>
    message.replyMedium(ANSWER, patterned(100, message.word(0)), message.word(0)),
  )
  const answers: number[] = []
  a.group.setHandler(ANSWER, message => {
    t.ok(message.copy().equals(patterned(100, message.word(0))))
    answers.push(message.word(0))
  })
  block(b.end)
  for (let i = 0; i < 4; i++) sendRequest(a.channel, ECHO, [i])
  t.equal(b.group.poll(), 4)
  t.equal(b.channel.arm(), true, 'b sleeps until there is room')
  t.equal(a.channel.creditsLeft, 0)
  settle(a, b)
  t.strictSame(answers, [0, 1, 2, 3])
  t.equal(a.channel.creditsLeft, 4, 'each reply brought its credit')
})

t.test('a handler that throws loses its own message only', async t => {
  const [a, b] = openChannelPair({ credits: 4 })
  const handled: number[] = []
  b.group.setHandler(SINK, message => {
    handled.push(message.word(0))
    if (message.word(0) === 1) throw new Error('from the handler')
  })
  for (let i = 0; i < 4; i++) sendRequest(a.channel, SINK, [i])
  t.throws(() => b.group.poll(), { message: 'from the handler' })
  settle(a, b)
  t.strictSame(handled, [0, 1, 2, 3])
  t.equal(a.channel.creditsLeft, 4, 'its credit came back too')
})

t.test('the owner is told after each poll', async t => {
  const [a, b] = openChannelPair()
  b.group.setHandler(SINK, () => {})
  b.group.poll()
  sendRequest(a.channel, SINK)
  b.group.poll()
  t.equal(b.owner.progressCount, 2)
})

t.test('a closed channel refuses with CLOSED, sends no reply, and closing again is nothing', async t => {
  const [a, b] = openChannelPair()
  b.group.setHandler(ECHO, message => {
    b.group.detach(b.channel)
    message.reply(ANSWER)
  })
  sendRequest(a.channel, ECHO)
  sendRequest(a.channel, ECHO)
  t.doesNotThrow(() => b.group.poll())
  b.channel.close()
  t.equal(b.channel.state, 'closed')
  t.equal(b.end.state, 'closed')
  t.equal(sendRequest(b.channel, SINK), CLOSED)
  t.equal(sendRequest(b.channel, SINK, [], patterned(8, 1)), CLOSED)
  t.equal(b.channel.reserveRequest(SINK, 0, 0), CLOSED)
  t.equal(b.channel.progress(10), CLOSED)
  t.strictSame(b.owner.errors, [])
  t.equal(a.group.poll(), 0, 'nothing came back')
})

t.test('a closed group has closed its channels and takes no new ones', async t => {
  const [a, b] = openChannelPair()
  const [near] = openLoopbackPair(RING_SIZE_MIN)
  a.group.close()
  t.equal(a.channel.state, 'closed')
  t.equal(a.group.poll(), 0)
  t.throws(() => a.group.attach(near, { owner: new OwnerLog() }), { code: 'ERR_AM_CLOSED' })
  t.equal(b.channel.state, 'open')
})

t.test('arm refuses while a message waits, and waits for room while a reply does', async t => {
  const [a, b] = openChannelPair()
  b.group.setHandler(ECHO, message => message.reply(ANSWER))
  a.group.setHandler(ANSWER, () => {})
  t.equal(b.channel.arm(), true)
  sendRequest(a.channel, ECHO)
  t.equal(b.channel.arm(), false)
  fill(b.end, 1000)
  drain(b.end)
  t.equal(b.channel.arm(), true)
})
