/** Sequence numbers of streams are int32: what happens where their sign changes, and where they begin anew. */
import t, { type Test } from 'tap'
import { SocketChannel } from '../../../fastsockets/stream/socket-channel.ts'
import type { Stream } from '../../../fastsockets/stream/stream.ts'
import { WINDOW } from '../../../fastsockets/stream/stream-layout.ts'
import type { StreamSink } from '../../../fastsockets/stream/stream-sink.ts'
import { THRESHOLD_MIN, THRESHOLD_VARIABLE } from '../../../fastsockets/stream/zcopy/threshold.ts'
import { openLoopbackPair } from '../../../nic/index.ts'
import { isPatterned, patterned } from '../../support/pattern.ts'

process.env[THRESHOLD_VARIABLE] = String(THRESHOLD_MIN)

/** The two ends of a connection, whose channels are polled by `poll`. */
interface Connection {
  readonly near: Stream
  readonly far: Stream
  readonly client: SocketChannel
  poll(): void
}

const NOBODY: Partial<StreamSink> = {
  isReading: false,
  handleConnected() {},
  handleWritten() {},
  handleSent() {},
  handleShutdown() {},
  handleEnd() {},
  handleError() {},
}

function open(t: Test): Connection {
  const [one, other] = openLoopbackPair()
  let far: Stream | undefined
  const accept = (stream: Stream) => ({
    clientPort: 1024,
    begin() {
      far = stream
    },
  })
  const gone = (): void => {}
  const client = new SocketChannel(one, 'the server', () => 3, gone, true)
  const server = new SocketChannel(other, 'the client', accept, gone, true)
  t.teardown(() => {
    client.close()
    server.close()
  })
  const poll = (): void => {
    for (let i = 0; i < 50; i++) {
      server.pollNow(64)
      client.pollNow(64)
    }
  }
  const near = client.connect(NOBODY as StreamSink, 80, '127.0.0.1', 4) as Stream
  poll()
  return { near, far: far as unknown as Stream, client, poll }
}

/** As if so many bytes had been sent, received and consumed. */
function pass(from: Stream, to: Stream, bytes: number): void {
  move(from, ['sendSequence', 'sendLimit', 'peerConsumed'], bytes)
  move(to, ['receiveSequence', 'consumed', 'reportedLast'], bytes)
}

function move(stream: Stream, names: readonly string[], bytes: number): void {
  const members = stream as unknown as Record<string, number>
  for (const name of names) members[name] = ((members[name] as number) + bytes) | 0
}

for (const [what, position] of [
  ['2^31, where the sign changes', 2 ** 31],
  ['2^32, where they begin anew', 2 ** 32],
] as const) {
  for (const isOffset of [true, false]) {
    const before = isOffset ? 100_001 : 2 ** 18
    t.test(`sequences pass ${what}, ${before} bytes from here`, async t => {
      const { near, far, client, poll } = open(t)
      pass(near, far, position - before)
      const lengths = [10, 70_001, 1, 40_000, 3 * WINDOW, 5, 900_000, 30_000, 30_000, 7]
      let received = 0
      let isIntact = true
      let hasEnded = false
      far.sink = {
        ...NOBODY,
        isReading: true,
        handleData(bytes: Buffer) {
          isIntact &&= isPatterned(bytes, received)
          received += bytes.length
          return bytes.length
        },
        handleEnd() {
          hasEnded = true
        },
      } as StreamSink
      let sent = 0
      const write = (): void => {
        for (let length = lengths.shift(); length !== undefined; length = lengths.shift()) {
          const chunk = patterned(sent, length)
          sent += length
          if (!near.write([chunk])) return
        }
        near.shutdown()
      }
      near.sink = { ...NOBODY, handleWritten: write } as StreamSink
      write()
      for (let i = 0; i < 100 && !hasEnded; i++) poll()
      t.ok(hasEnded)
      t.equal(received, sent)
      t.ok(isIntact)
      t.ok(near.counts.snapshot().zcopyBytesOut > 0, 'some of it was fetched')
      t.ok(client.isOpen)
    })
  }
}

t.test('a posted receive stands for one place of the stream, and not for the one 4 GiB on', async t => {
  const { near, far, client, poll } = open(t)
  let received = 0
  far.sink = {
    ...NOBODY,
    isReading: true,
    handleData(bytes: Buffer) {
      received += bytes.length
      return bytes.length
    },
  } as StreamSink
  const { zcopyPart } = far as unknown as { zcopyPart(): { isPostingWorthwhile: boolean } }
  zcopyPart.call(far).isPostingWorthwhile = true
  const into = Buffer.alloc(100_000)
  far.postReceive(into)
  poll()
  t.equal(near.trySend(Buffer.alloc(100, 1)), 100)
  poll()
  t.equal(received, 100)
  pass(near, far, 2 ** 32 - 100)
  near.write([Buffer.alloc(50_000, 2)])
  poll()
  t.equal(received, 50_100)
  t.ok(into.every(byte => byte === 0))
  t.ok(client.isOpen)
})
