/**
 * A client that was accepted once hears of its next connections before the server has answered, as the kernel completes a
 * handshake for it; and not once the server has closed its listener, or is gone.
 */
import t, { type Test } from 'tap'
import { ChannelGroup, type ChannelOwner } from '../../../am/index.ts'
import { SocketChannel, type SocketStream } from '../../../fastsockets/stream/socket-channel.ts'
import {
  ACCEPT,
  CHANNEL_CREDITS,
  CLOSE,
  CLOSE_DONE,
  CONNECT,
  DATA,
  EARLY_WINDOW,
  REFUSE,
  STREAMS_MAX,
  WINDOW,
} from '../../../fastsockets/stream/stream-layout.ts'
import type { StreamSink } from '../../../fastsockets/stream/stream-sink.ts'
import { NO_RESOURCE, openLoopbackPair } from '../../../nic/index.ts'
import { Child, plainEnvironment } from '../../support/child.ts'
import { program, relinked } from '../../support/relinked.ts'
import { SocketLiar } from '../../support/socket-liar.ts'
import { hear, say } from '../../support/socket-messages.ts'
import { eventually, until } from '../../support/until.ts'

/** No server is presumed to be busy in this time. */
const PATIENCE_MS = 60_000
const env = { ...plainEnvironment(), FASTSOCKETS_GREETING_TIMEOUT_MS: String(PATIENCE_MS) }
/** Where the event loop does not count how often it has looked, answers are waited for. */
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
const skip = major === 20 && minor < 3 ? 'needs Node 20.3' : false

function idleOwner(peerName: string): ChannelOwner {
  return {
    peerName,
    destination: undefined,
    handleProgress() {},
    roomWanted: () => 0,
    handleBroken() {},
  }
}

interface Answer {
  readonly log: readonly string[]
  readonly wire?: string
}

class Pair {
  readonly server: Child
  readonly #client: Child

  constructor(server: Child, client: Child) {
    this.server = server
    this.#client = client
  }

  client(what: string, of = 0): Promise<Answer> {
    return this.#client.ask<Answer>({ what, of })
  }

  async serverLog(): Promise<readonly string[]> {
    return (await this.server.ask<Answer>({ deed: 'log' })).log
  }

  release(): void {
    this.server.process.stdin?.write('.')
  }
}

/** What happens, plain and relinked: the same. Returns what the relinked ones saw. */
async function compare(t: Test, happen: (pair: Pair) => Promise<unknown>): Promise<unknown> {
  const outcomes: unknown[] = []
  for (const [options, wire] of [
    [{ env }, 'tcp'],
    [relinked({ env }), 'shm'],
  ] as const) {
    const server = new Child(t, program('early-connects'), ['server'], {
      ...options,
      stdio: ['pipe', 'inherit', 'pipe', 'ipc'],
    })
    const { ports } = await server.receive<{ ports: number[] }>()
    const client = new Child(t, program('early-connects'), ['client', ...ports.map(String)], options)
    await client.receive()
    const pair = new Pair(server, client)
    // From now on the client has been accepted by both listeners.
    for (const of of [0, 1]) {
      t.equal((await pair.client('connect', of)).wire, wire)
      await pair.client('ask', of)
    }
    await pair.serverLog()
    outcomes.push(await happen(pair))
  }
  t.strictSame(outcomes[1], outcomes[0])
  return outcomes[1]
}

t.test('the server stands still: it is connected, and what is written is out', { skip }, async t => {
  const seen = await compare(t, async pair => {
    await pair.server.ask({ deed: 'block' })
    const connected = await pair.client('connect')
    const gone = await pair.client('write and go')
    pair.release()
    const heard: string[] = []
    await eventually('the end', async () => {
      heard.push(...(await pair.serverLog()))
      return heard.filter(line => line === '0 close').length === 1
    })
    return [connected.log, gone.log, heard]
  })
  t.strictSame(seen, [
    ['0 connect number'],
    ['0 close'],
    ['0 connection', '0 immediate', '0 data early', '0 end', '0 close'],
  ])
})

t.test(
  'who has gone before it was accepted has come to its end, whatever was said to it',
  { skip },
  async t => {
    const seen = await compare(t, async pair => {
      await pair.server.ask({ deed: 'greet' })
      await pair.server.ask({ deed: 'block' })
      await pair.client('connect')
      await pair.client('go')
      pair.release()
      const heard: string[] = []
      await eventually('the end', async () => {
        heard.push(...(await pair.serverLog()))
        return heard.includes('0 close')
      })
      return heard
    })
    t.strictSame(seen, ['0 connection', '0 immediate', '0 end', '0 close'])
  },
)

t.test('early bytes skip the socket buffer, too', { skip }, async t => {
  await compare(t, async pair => {
    await pair.server.ask({ deed: 'block' })
    await pair.client('connect')
    await pair.client('write and go')
    pair.release()
    await eventually('the end', async () => (await pair.serverLog()).includes('0 close'))
    return (await pair.server.ask<{ buffered: number }>({ deed: 'log' })).buffered
  })
})

t.test('the listener is closed: refused', async t => {
  const seen = await compare(t, async pair => {
    await pair.server.ask({ deed: 'close' })
    const refused = await pair.client('connect')
    return [...refused.log, ...(await pair.client('closed')).log]
  })
  t.strictSame(seen, ['0 connect ECONNREFUSED 127.0.0.1:port', '0 close'])
})

t.test('and so if the client hears of that over the same channel', async t => {
  const seen = await compare(t, async pair => (await pair.client('connect to the closed one', 1)).log)
  t.strictSame(seen, ['1 data heard', '0 connect ECONNREFUSED 127.0.0.1:port', '0 close'])
})

t.test('the server has died: refused', async t => {
  const seen = await compare(t, async pair => {
    await pair.server.kill()
    return (await pair.client('connect')).log.filter(line => line.includes('connect'))
  })
  t.strictSame(seen, ['0 connect ECONNREFUSED 127.0.0.1:port'])
})

t.test('a listener that closes before it accepts resets who is connected', { skip }, async t => {
  const seen = await compare(t, async pair => {
    await pair.server.ask({ deed: 'block, close' })
    const connected = await pair.client('connect')
    pair.release()
    return [connected.log, (await pair.client('closed')).log]
  })
  t.strictSame(seen, [['0 connect number'], ['0 read ECONNRESET', '0 close']])
})

t.test('in a worker thread answers are waited for, and it ends by itself', async t => {
  const server = new Child(t, program('server'), ['echo'], relinked())
  const { port } = await server.receive<{ port: number }>()
  const worker = new Child(t, program('connecting-worker'), [String(port)], relinked())
  t.strictSame(await worker.receive(), { transports: ['shm', 'shm', 'shm'] })
  t.match(await worker.end(), { code: 0 })
})

t.test('a program may be told before its CONNECT has found room: nothing overtakes that', async t => {
  const [end, other] = openLoopbackPair()
  const asking = new SocketChannel(
    end,
    'asking',
    () => 3,
    () => {},
  )
  const heard: string[] = []
  const group = new ChannelGroup()
  const note = (what: string, handler: number): void =>
    hear(group, handler, ({ words: [to = 0] }) => heard.push(`${what} ${Math.abs(to)}`))
  note('CONNECT', CONNECT)
  note('DATA', DATA)
  note('CLOSE', CLOSE)
  const channel = group.attach(other, { credits: CHANNEL_CREDITS, owner: idleOwner('asking') })
  t.teardown(() => {
    asking.close()
    group.detach(channel)
  })
  const sink: Partial<StreamSink> = { handleWritten() {}, handleRefused() {} }
  const { reserveRequest } = asking.channel
  asking.channel.reserveRequest = () => NO_RESOURCE
  const [written, gone] = [1, 2].map(() => asking.connect(sink as StreamSink, 80, '127.0.0.1', 4)) as [
    SocketStream,
    SocketStream,
  ]
  for (const stream of [written, gone]) asking.presumeConnected(stream)
  asking.channel.reserveRequest = reserveRequest
  for (const stream of [written, gone]) {
    t.ok(stream.write([Buffer.from('early')]), 'it is taken')
    t.ok(stream.unsentLength > 0)
  }
  gone.close(false)
  t.equal(written.counts.bytesOut, 0)
  const numbers = [written.id, gone.id]
  await until('all of it', () => heard.length >= 4)
  t.strictSame(
    heard,
    [`CONNECT ${numbers[0]}`, `CONNECT ${numbers[1]}`, `DATA ${numbers[0]}`, `DATA ${numbers[1]}`],
    'and the CLOSE of who has gone follows the answer',
  )
  t.equal(written.sendSequence, 5)
})

t.test('what a client had sent before it knew of its refusal is dropped', async t => {
  const [end, other] = openLoopbackPair()
  const refusing = new SocketChannel(
    end,
    'refusing',
    () => 3,
    () => {},
  )
  const heard: number[] = []
  const group = new ChannelGroup()
  group.setHandler(REFUSE, message => heard.push(message.word(0)))
  const channel = group.attach(other, { credits: CHANNEL_CREDITS, owner: idleOwner('refusing') })
  t.teardown(() => {
    refusing.close()
    group.detach(channel)
  })
  const tell = (handler: number, words: readonly number[], payload = ''): boolean =>
    say(channel, handler, words, Buffer.from(payload))
  tell(CONNECT, [7, 80, WINDOW, 4], '127.0.0.1')
  tell(DATA, [-7, 0, 0, 0], 'early')
  tell(CLOSE, [-7, CLOSE_DONE, 0])
  await until('a refusal', () => heard.length === 1)
  t.ok(refusing.isOpen)
  tell(DATA, [-8, 0, 0, 0], 'of a connection without a CONNECT')
  await until('the end', () => !refusing.isOpen)
})

t.test('a place that is taken is not given again', async t => {
  for (const number of [1, 1 + STREAMS_MAX]) {
    const liar = new SocketLiar(t)
    await liar.connect()
    liar.say(CONNECT, [number, 80, WINDOW, 4], Buffer.from('127.0.0.1'))
    await until('the end', () => liar.isGone)
  }
})

t.test('a place is free when both have said CLOSE, also if a reset is still to be said', async t => {
  const liar = new SocketLiar(t)
  const to = await liar.connect()
  const { stream } = liar
  stream.close(false)
  await liar.hears(CLOSE)
  const { channel } = stream.channel
  const { reserveOneWay } = channel
  // The answer to bytes for a closed socket finds no room.
  channel.reserveOneWay = (handler, ...rest) =>
    handler === CLOSE ? NO_RESOURCE : reserveOneWay.call(channel, handler, ...rest)
  liar.say(DATA, [to, 0, 0, 0], Buffer.from('late'))
  liar.say(CLOSE, [to, CLOSE_DONE, 0])
  liar.say(CONNECT, [1 + STREAMS_MAX, 80, WINDOW, 4], Buffer.from('127.0.0.1'))
  t.strictSame((await liar.hears(ACCEPT))[0], 1 + STREAMS_MAX)
  t.notOk(liar.isGone)
  t.equal(stream.state, 'closed')
})

t.test('a window that is less than what may have been sent before is none', async t => {
  for (const window of [EARLY_WINDOW, EARLY_WINDOW - 1]) {
    const [end, other] = openLoopbackPair()
    const asking = new SocketChannel(
      end,
      'asking',
      () => 3,
      () => {},
    )
    const group = new ChannelGroup()
    group.setHandler(CONNECT, message => message.reply(ACCEPT, message.word(0), window, 1025))
    const channel = group.attach(other, { credits: CHANNEL_CREDITS, owner: idleOwner('asking') })
    let outcome = ''
    const sink: Partial<StreamSink> = {
      handleConnected() {
        outcome = 'connected'
      },
      handleRefused() {
        outcome = 'refused'
      },
    }
    asking.connect(sink as StreamSink, 80, '127.0.0.1', 4)
    await until('an answer', () => outcome !== '')
    t.equal(outcome, window === EARLY_WINDOW ? 'connected' : 'refused')
    t.equal(asking.isOpen, window === EARLY_WINDOW)
    asking.close()
    group.detach(channel)
  }
})
