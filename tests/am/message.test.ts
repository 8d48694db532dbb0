import t from 'tap'
import type { Message } from '../../am/index.ts'
import { AmError, WORDS_MAX } from '../../am/index.ts'
import { channelOf } from '../../am/message.ts'
import { openChannelPair, sendRequest, settle } from '../support/channels.ts'
import { patterned } from '../support/frames.ts'

const ECHO = 10
const ANSWER = 20

t.test('a short message carries 0 to 8 words', async t => {
  const [a, b] = openChannelPair()
  const received: number[][] = []
  b.group.setHandler(ECHO, message => {
    t.equal(message.isRequest, true)
    t.equal(message.handler, ECHO)
    t.equal(message.length, 0)
    t.equal(message.payload().length, 0)
    received.push(Array.from({ length: message.wordCount }, (_, i) => message.word(i)))
  })
  const words = [0, -1, 1, 0x7fff_ffff, -0x8000_0000, 42, -42, 7]
  for (let count = 0; count <= WORDS_MAX; count++)
    t.equal(sendRequest(a.channel, ECHO, words.slice(0, count)), 0)
  settle(a, b)
  t.strictSame(
    received,
    Array.from({ length: WORDS_MAX + 1 }, (_, count) => words.slice(0, count)),
  )
})

t.test('words that were not sent read as 0, also after a message that had them', async t => {
  const [a, b] = openChannelPair()
  const seen: number[] = []
  b.group.setHandler(ECHO, message => {
    for (let i = 0; i < WORDS_MAX; i++) seen.push(message.word(i))
  })
  sendRequest(a.channel, ECHO, [1, 2, 3, 4, 5, 6, 7, 8])
  sendRequest(a.channel, ECHO, [9])
  settle(a, b)
  t.strictSame(seen, [1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 0, 0, 0, 0, 0, 0])
})

t.test('a medium message carries a payload of any length up to mediumMax, with all its words', async t => {
  const [a, b] = openChannelPair()
  const { mediumMax } = a.channel
  const received: [number, Buffer][] = []
  b.group.setHandler(ECHO, message => received.push([message.word(7), message.copy()]))
  const lengths = [0, 1, 7, 8, 9, 63, 64, 1000, mediumMax - 1, mediumMax]
  for (const length of lengths) {
    const words = [0, 0, 0, 0, 0, 0, 0, length]
    t.equal(sendRequest(a.channel, ECHO, words, patterned(length, length)), 0)
    settle(a, b)
  }
  lengths.forEach((length, i) => {
    t.equal(received[i]?.[0], length)
    t.ok(received[i]?.[1].equals(patterned(length, length)), `${length} bytes`)
  })
})

t.test(
  'payload is a view, copy is the handler’s own, bytes and offset are the view without garbage',
  async t => {
    const [a, b] = openChannelPair()
    let view: Uint8Array | undefined
    let copy: Buffer | undefined
    b.group.setHandler(ECHO, message => {
      view = message.payload()
      copy = message.copy()
      t.equal(message.bytes[message.offset], view[0])
      t.equal(view.buffer, message.bytes.buffer)
      t.equal(view.length, message.length)
    })
    sendRequest(a.channel, ECHO, [], patterned(100, 1))
    settle(a, b)
    view?.fill(0)
    t.ok(copy?.equals(patterned(100, 1)), 'untouched by what happens to the view')
  },
)

t.test(
  'a request handler may reply, with words and with a payload; the reply says that it is none',
  async t => {
    const [a, b] = openChannelPair()
    b.group.setHandler(ECHO, message => {
      if (message.length === 0) message.reply(ANSWER, message.word(0) + 1)
      else message.replyMedium(ANSWER, message.payload(), message.word(0) + 1)
    })
    const answers: [boolean, number, Buffer][] = []
    a.group.setHandler(ANSWER, message => answers.push([message.isRequest, message.word(0), message.copy()]))
    sendRequest(a.channel, ECHO, [1])
    sendRequest(a.channel, ECHO, [2], patterned(500, 4))
    settle(a, b)
    t.strictSame(answers, [
      [false, 2, Buffer.alloc(0)],
      [false, 3, patterned(500, 4)],
    ])
  },
)

t.test('a request handler that replies twice is told so with ERR_AM_TOKEN', async t => {
  const [a, b] = openChannelPair()
  const errors: unknown[] = []
  b.group.setHandler(ECHO, message => {
    message.reply(ANSWER, 1)
    for (const again of [
      () => message.reply(ANSWER, 2),
      () => message.replyMedium(ANSWER, patterned(8, 1)),
    ]) {
      try {
        again()
      } catch (error) {
        errors.push(error)
      }
    }
  })
  const answers: number[] = []
  a.group.setHandler(ANSWER, message => answers.push(message.word(0)))
  sendRequest(a.channel, ECHO)
  settle(a, b)
  t.match(errors, [{ code: 'ERR_AM_TOKEN' }, { code: 'ERR_AM_TOKEN' }])
  t.type(errors[0], AmError)
  t.strictSame(answers, [1])
})

t.test('a reply handler that replies is told so with ERR_AM_TOKEN', async t => {
  const [a, b] = openChannelPair()
  b.group.setHandler(ECHO, message => message.reply(ANSWER))
  let error: unknown
  a.group.setHandler(ANSWER, message => {
    try {
      message.reply(ECHO)
    } catch (thrown) {
      error = thrown
    }
  })
  sendRequest(a.channel, ECHO)
  settle(a, b)
  t.match(error, { code: 'ERR_AM_TOKEN' })
})

t.test('a message that is used after its handler has returned is ERR_AM_TOKEN', async t => {
  const [a, b] = openChannelPair()
  let kept: Message | undefined
  b.group.setHandler(ECHO, message => {
    kept = message
  })
  sendRequest(a.channel, ECHO, [5], patterned(10, 1))
  settle(a, b)
  const message = kept as Message
  const uses = [
    () => message.word(0),
    () => message.payload(),
    () => message.copy(),
    () => message.reply(ANSWER),
    () => message.replyMedium(ANSWER, patterned(8, 1)),
  ]
  for (const use of uses) t.throws(use, { code: 'ERR_AM_TOKEN' })
})

t.test('a message ends also when its handler throws', async t => {
  const [a, b] = openChannelPair()
  let kept: Message | undefined
  b.group.setHandler(ECHO, message => {
    kept = message
    throw new Error('from the handler')
  })
  sendRequest(a.channel, ECHO, [5])
  t.throws(() => b.group.poll(), { message: 'from the handler' })
  t.throws(() => kept?.reply(ANSWER), { code: 'ERR_AM_TOKEN' })
})

t.test('a reply that is too long is ERR_AM_ARGUMENT, and a right one may follow', async t => {
  const [a, b] = openChannelPair()
  b.group.setHandler(ECHO, message => {
    const tooMany = [1, 2, 3, 4, 5, 6, 7, 8, 9]
    t.throws(() => message.reply(ANSWER, ...tooMany), { code: 'ERR_AM_ARGUMENT' })
    const tooLong = new Uint8Array(channelOf(message).mediumMax + 1)
    t.throws(() => message.replyMedium(ANSWER, tooLong), { code: 'ERR_AM_ARGUMENT' })
    message.reply(ANSWER, 1)
  })
  const answers: number[] = []
  a.group.setHandler(ANSWER, message => answers.push(message.word(0)))
  sendRequest(a.channel, ECHO)
  settle(a, b)
  t.strictSame(answers, [1])
})

t.test('a reply to a handler that cannot be is ERR_AM_ARGUMENT, and does not break the channel', async t => {
  for (const index of [-1, 0, 256, 1.5, Number.NaN]) {
    const [a, b] = openChannelPair()
    let error: unknown
    b.group.setHandler(ECHO, message => {
      try {
        message.reply(index)
      } catch (thrown) {
        error = thrown
      }
    })
    sendRequest(a.channel, ECHO)
    settle(a, b)
    t.match(error, { code: 'ERR_AM_ARGUMENT' }, `handler ${index}`)
    t.equal(a.channel.state, 'open', `handler ${index}`)
  }
})
