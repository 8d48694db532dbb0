/** What a program wrote before it destroyed the socket arrives, as what TCP's kernel has taken does; within bounds. */
import t from 'tap'
import { SocketChannel } from '../../fastsockets/stream/socket-channel.ts'
import type { Stream } from '../../fastsockets/stream/stream.ts'
import { CHANNEL_LINGER_MAX, LINGER_MAX, WINDOW } from '../../fastsockets/stream/stream-layout.ts'
import type { StreamSink } from '../../fastsockets/stream/stream-sink.ts'
import { openLoopbackPair } from '../../nic/index.ts'
import { Child } from '../support/child.ts'
import { program, relinked } from '../support/relinked.ts'

t.test('bytes that were written before a socket was destroyed arrive', async t => {
  const plain = await new Child(t, program('destroyed')).receive<number[][]>()
  t.strictSame(plain, [
    [100, 300_000, 1_000_000],
    [100, 300_000, 1_000_000],
  ])
  t.strictSame(await new Child(t, program('destroyed'), [], relinked()).receive<number[][]>(), plain)
})

/** So short that none is offered instead of sent. */
const CHUNK = 16 * 1024
const VALUE = 7

/** Reads only when told, and keeps what it got. */
class Reader {
  isReading = false
  received = 0
  /** All bytes were `VALUE`. */
  isWhole = true
  hasEnded = false
  readonly sink: Partial<StreamSink>

  constructor(stream: Stream) {
    const self = this
    this.sink = {
      get isReading() {
        return self.isReading
      },
      handleData(bytes: Buffer) {
        self.received += bytes.length
        self.isWhole &&= bytes.every(byte => byte === VALUE)
        return bytes.length
      },
      handleEnd: () => this.#end(stream),
      handleError: () => this.#end(stream),
    }
    stream.sink = this.sink as StreamSink
  }

  #end(stream: Stream): void {
    this.hasEnded = true
    stream.close(false)
  }
}

/** Each of `count` sockets writes `length` bytes to a peer that does not read yet, is closed, and has its memory used again. */
function writeAndClose(
  count: number,
  length: number,
): { received: number[]; areWhole: boolean; lingering: number } {
  const [near, far] = openLoopbackPair()
  const readers: { reader: Reader; stream: Stream }[] = []
  const accept = (stream: Stream) => ({
    clientPort: 1024 + readers.length,
    begin: () => void readers.push({ reader: new Reader(stream), stream }),
  })
  const client = new SocketChannel(
    near,
    'the server',
    () => 3,
    () => {},
    true,
  )
  const server = new SocketChannel(far, 'the client', accept, () => {}, true)
  const poll = (): void => {
    for (let i = 0; i < 50; i++) {
      server.pollNow(64)
      client.pollNow(64)
    }
  }
  const nobody: Partial<StreamSink> = {
    handleConnected() {},
    handleError() {},
    handleSent() {},
    handleWritten() {},
  }
  const streams = Array.from({ length: count }, () =>
    client.connect(nobody as StreamSink, 80, '127.0.0.1', 4),
  ) as Stream[]
  poll()
  const chunks = Array.from({ length: length / CHUNK }, () => Buffer.alloc(CHUNK))
  for (const stream of streams) {
    for (const chunk of chunks) chunk.fill(VALUE)
    stream.outgoing.write(chunks)
    poll()
    stream.close(false)
    for (const chunk of chunks) chunk.fill(0)
  }
  const lingering = client.streams.lingering
  for (const { reader, stream } of readers) {
    reader.isReading = true
    stream.startReading()
  }
  for (let i = 0; i < 1000 && !readers.every(({ reader }) => reader.hasEnded); i++) poll()
  const seen = {
    received: readers.map(({ reader }) => reader.received),
    areWhole: readers.every(({ reader }) => reader.isWhole && reader.hasEnded),
    lingering,
  }
  t.equal(client.streams.lingering, 0, 'and nothing is left')
  for (const channel of [client, server]) channel.close()
  return seen
}

t.test('it is a copy: the program has its memory back', async t => {
  const length = WINDOW + 64 * CHUNK
  t.strictSame(writeAndClose(1, length), { received: [length], areWhole: true, lingering: 64 * CHUNK })
})

t.test('of a larger write comes what was sent', async t => {
  const { received, areWhole, lingering } = writeAndClose(1, WINDOW + LINGER_MAX + CHUNK)
  t.strictSame({ received, areWhole, lingering }, { received: [WINDOW], areWhole: true, lingering: 0 })
})

t.test('so much at most of all sockets of a peer', async t => {
  const fitting = CHANNEL_LINGER_MAX / LINGER_MAX
  const length = WINDOW + LINGER_MAX
  const { received, areWhole, lingering } = writeAndClose(fitting + 1, length)
  t.strictSame(received, [...Array.from({ length: fitting }, () => length), WINDOW])
  t.ok(areWhole)
  t.equal(lingering, CHANNEL_LINGER_MAX)
})
