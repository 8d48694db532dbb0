/**
 * A server answers CONNECTs in the order in which they came, since promised ports are counted by it. One that does not
 * would leave what waits for a promise where it is, connection after connection.
 */
import t from 'tap'
import { KIND_REPLY, KIND_REQUEST } from '../../../am/message-layout.ts'
import { SocketChannel } from '../../../fastsockets/stream/socket-channel.ts'
import { ACCEPT, CONNECT, EARLY_WINDOW, REFUSE, WINDOW } from '../../../fastsockets/stream/stream-layout.ts'
import type { StreamSink } from '../../../fastsockets/stream/stream-sink.ts'
import { openLoopbackPair } from '../../../nic/index.ts'
import { drainMessages, sendMessage } from '../../support/messages.ts'

const CLIENT_PORT = 40_000

interface Answer {
  readonly handler: number
  readonly of: 0 | 1
  readonly window?: number
  readonly promise?: number
}

/** Two connections are asked for; what the server answers, by their numbers in that order. */
function answer(answers: readonly Answer[]): {
  isOpen: boolean
  outcomes: string[]
} {
  const [wire, far] = openLoopbackPair()
  const outcomes: string[] = []
  const channel = new SocketChannel(
    far,
    'a server',
    () => 3,
    () => {},
    true,
  )
  for (const name of ['first', 'second']) {
    const sink: Partial<StreamSink> = {
      handleConnected: () => void outcomes.push(`${name} connected`),
      handleRefused: () => void outcomes.push(`${name} refused`),
      handleError: () => {},
    }
    channel.connect(sink as StreamSink, 80, '127.0.0.1', 4)
  }
  const asked = [...drainMessages(wire)].filter(
    ({ kind, handler }) => kind === KIND_REQUEST && handler === CONNECT,
  )
  for (const [i, { handler, of, window = WINDOW, promise = 0 }] of answers.entries()) {
    const { slot, words } = asked[of] as (typeof asked)[number]
    sendMessage(wire, {
      kind: KIND_REPLY,
      handler,
      slot,
      words: [words[0] as number, window, CLIENT_PORT + i, promise],
    })
  }
  channel.pollNow(64)
  const seen = { isOpen: channel.isOpen, outcomes: [...outcomes] }
  channel.close()
  wire.close()
  return seen
}

t.test('in turn, either is heard', async t => {
  const seen = answer([
    { handler: REFUSE, of: 0 },
    { handler: ACCEPT, of: 1 },
  ])
  t.same(seen, { isOpen: true, outcomes: ['first refused', 'second connected'] })
})

for (const handler of [ACCEPT, REFUSE])
  t.test(`out of turn, ${handler === ACCEPT ? 'an ACCEPT' : 'a REFUSE'} ends the channel`, async t => {
    const { isOpen, outcomes } = answer([{ handler, of: 1 }])
    t.notOk(isOpen)
    t.notOk(outcomes.includes('second connected'))
  })

for (const window of [WINDOW, WINDOW - 1])
  t.test(`a window of ${window} bytes, where ${WINDOW} were promised with the port`, async t => {
    const { isOpen, outcomes } = answer([
      { handler: ACCEPT, of: 0, promise: CLIENT_PORT + 1 },
      { handler: ACCEPT, of: 1, window },
    ])
    t.equal(isOpen, window === WINDOW)
    t.equal(outcomes.includes('second connected'), window === WINDOW)
  })

t.test('without a promise, the least window will do', async t => {
  const { isOpen } = answer([
    { handler: ACCEPT, of: 0 },
    { handler: ACCEPT, of: 1, window: EARLY_WINDOW },
  ])
  t.ok(isOpen)
})
