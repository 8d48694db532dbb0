/** What a program wrote before it destroyed the socket arrives, as what TCP's kernel has taken does; within bounds. */
import t from 'tap'
import { SocketChannel } from '../../../fastsockets/stream/socket-channel.ts'
import type { Stream } from '../../../fastsockets/stream/stream.ts'
import { WINDOW } from '../../../fastsockets/stream/stream-layout.ts'
import type { StreamSink } from '../../../fastsockets/stream/stream-sink.ts'
import { keptBytes } from '../../../fastsockets/stream/unread-budget.ts'
import { openLoopbackPair } from '../../../nic/index.ts'
import { Child } from '../../support/child.ts'
import { program, relinked } from '../../support/relinked.ts'

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

/** Reads only on request, and keeps what it read. */
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
): { received: number[]; areWhole: boolean; kept: number } {
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
    stream.write(chunks)
    poll()
    stream.close(false)
    for (const chunk of chunks) chunk.fill(0)
  }
  const kept = keptBytes()
  for (const { reader, stream } of readers) {
    reader.isReading = true
    stream.startReading()
  }
  for (let i = 0; i < 1000 && !readers.every(({ reader }) => reader.hasEnded); i++) poll()
  const seen = {
    received: readers.map(({ reader }) => reader.received),
    areWhole: readers.every(({ reader }) => reader.isWhole && reader.hasEnded),
    kept,
  }
  t.equal(keptBytes(), 0, 'and nothing is left')
  for (const channel of [client, server]) channel.close()
  return seen
}

t.test('it is a copy: the program has its memory back', async t => {
  t.strictSame(writeAndClose(1, WINDOW), { received: [WINDOW], areWhole: true, kept: WINDOW })
})

t.test('of a larger write comes what was taken', async t => {
  t.strictSame(writeAndClose(1, WINDOW + CHUNK), { received: [WINDOW], areWhole: true, kept: WINDOW })
})
