/**
 * A client that was accepted once hears of its next connections before the server has answered, as the kernel completes a
 * handshake for it; and not once the server has closed its listener, or is gone.
 */
import t, { type Test } from 'tap'
import { ChannelGroup } from '../../am/index.ts'
import { SocketChannel } from '../../fastsockets/stream/socket-channel.ts'
import {
  ACCEPT,
  CHANNEL_CREDITS,
  CLOSE,
  CLOSE_DONE,
  CONNECT,
  DATA,
  EARLY_WINDOW,
  REFUSE,
  WINDOW,
} from '../../fastsockets/stream/stream-layout.ts'
import type { StreamSink } from '../../fastsockets/stream/stream-sink.ts'
import { openLoopbackPair } from '../../nic/index.ts'
import { Child, plainEnvironment } from '../support/child.ts'
import { program, relinked } from '../support/relinked.ts'
import { SocketLiar } from '../support/socket-liar.ts'
import { eventually, until } from '../support/until.ts'

/** Nobody is presumed to be busy in this time. */
const PATIENCE_MS = 60_000
const env = { ...plainEnvironment(), FASTSOCKETS_GREETING_TIMEOUT_MS: String(PATIENCE_MS) }
/** Where the event loop does not count how often it has looked, answers are waited for. */
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
const skip = major === 20 && minor < 3 ? 'needs Node 20.3' : false

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
    ['0 connection', '0 immediate', '0 data early', '0 close'],
  ])
})

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

t.test('what a client had said before it heard that it is refused is nobody’s', async t => {
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
  const owner = {
    peerName: 'refusing',
    destination: undefined,
    handleProgress() {},
    roomWanted: () => 0,
    handleBroken() {},
  }
  const channel = group.attach(other, { credits: CHANNEL_CREDITS, owner })
  t.teardown(() => {
    refusing.close()
    group.detach(channel)
  })
  const say = (handler: number, words: readonly number[], payload = ''): void => {
    const at = channel.reserveRequest(handler, words.length, payload.length)
    for (const [i, word] of words.entries()) channel.putWord(i, word)
    for (let i = 0; i < payload.length; i++) channel.sendBytes[at + i] = payload.charCodeAt(i)
    channel.commit(payload.length)
  }
  say(CONNECT, [7, 80, WINDOW, 4], '127.0.0.1')
  say(DATA, [-7, 0, 0, 0], 'early')
  say(CLOSE, [-7, CLOSE_DONE, 0])
  await until('a refusal', () => heard.length === 1)
  t.ok(refusing.isOpen)
  say(DATA, [-8, 0, 0, 0], 'of a connection that nobody asked for')
  await until('the end', () => !refusing.isOpen)
})

t.test('a number that is in use is not given again', async t => {
  const liar = new SocketLiar(t)
  await liar.connect()
  liar.say(CONNECT, [1, 80, WINDOW, 4], Buffer.from('127.0.0.1'))
  await until('the end', () => liar.isGone)
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
    const owner = {
      peerName: 'asking',
      destination: undefined,
      handleProgress() {},
      roomWanted: () => 0,
      handleBroken() {},
    }
    const channel = group.attach(other, { credits: CHANNEL_CREDITS, owner })
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
