/**
 * Planted bugs: each breaks one rule of the product's code, in this process only, by a method that stands in for the
 * product's own. A simulation must find each of them.
 */

import { AckQueue } from '../../am/ack-queue.ts'
import { EndpointChannel } from '../../am/endpoint-channel.ts'
import { FrameWriter } from '../../am/frame-writer.ts'
import { Receiver } from '../../am/reliability/receiver.ts'
import { ACK_WORD, HEADER_SIZE, SACK_WORD } from '../../am/reliability/reliability-layout.ts'
import { ReliableInterface } from '../../am/reliability/reliable-interface.ts'
import { RoundTrip } from '../../am/reliability/round-trip.ts'
import { Flow } from '../../am/rpc/flow.ts'
import { Link } from '../../am/rpc/link.ts'
import { RemoteService } from '../../am/rpc/remote-service.ts'
import { Race } from '../../fastsockets/bootstrap/bootstrap-client.ts'
import { Door } from '../../fastsockets/bootstrap/door.ts'
import { HelloCallers } from '../../fastsockets/bootstrap/hello-callers.ts'
import { PromotedHandle } from '../../fastsockets/promotion/promoted-handle.ts'
import { MessageReceiver } from '../../fastsockets/raw/message-receiver.ts'
import { Operations } from '../../fastsockets/raw/operations.ts'
import { ReceiveBuffer } from '../../fastsockets/stream/receive-buffer.ts'
import { SocketChannel } from '../../fastsockets/stream/socket-channel.ts'
import { Stream } from '../../fastsockets/stream/stream.ts'
import { NameApi } from '../../nameservice/client/name-api.ts'
import { ChangeLog } from '../../nameservice/store/change-log.ts'
import { Image } from '../../nameservice/store/image.ts'
import type { Kind } from './simulate.ts'

/** Plants the bug; returns what removes it. */
type Plant = () => () => void

/** One of 20 acknowledgements of requests is lost. */
const lostCredit = wrapOnceIn(20, AckQueue.prototype, 'dequeueRun', call => {
  call()
  return 0
})

/** A long piece enters the receive buffer without its first byte. */
const lostByte = wrap(ReceiveBuffer.prototype, 'append', (call, source, offset, length) => {
  const skipped = length > 2000 ? 1 : 0
  call(source, offset + skipped, length - skipped)
})

/** By the kind of system that must find them. */
export const PLANTS: Readonly<Record<Kind, Readonly<Record<string, Plant>>>> = {
  endpoints: {
    /** A frame that is missing is acknowledged once a later one has come. */
    'early-acknowledgement': wrap(Receiver.prototype, 'putAcknowledgement', (call, words, at, isRiding) => {
      call(words, at, isRiding)
      const isMissing = ((words[at + SACK_WORD] as number) | (words[at + SACK_WORD + 1] as number)) !== 0
      if (isMissing) words[at + ACK_WORD] = (words[at + ACK_WORD] as number) + 1
    }),
    'lost-credit': lostCredit,
    /** One of 50 messages is handled twice. */
    'handled-twice': wrapOnceIn(50, EndpointChannel.prototype, 'handleFrame', function (call, ...frame) {
      call(...frame)
      if (this.state === 'open') call(...frame)
    }),
    /** The checksum does not matter. */
    'no-checksum': wrap(
      Receiver.prototype,
      'land',
      (call, words, at, length) => call(words, at, length) || (length >= HEADER_SIZE && length < 2000),
    ),
    /** A region begins one byte late. */
    'region-off-by-one': wrap(FrameWriter.prototype, 'putRegion', (call, offset, length) =>
      call(length > 2000 ? offset + 1 : offset, length),
    ),
    /** What is lost last is never sent again. */
    'no-time-out': replaceGetter(RoundTrip.prototype, 'timeoutMs', Number.POSITIVE_INFINITY),
    /** The memory of a channel is not released. */
    'kept-memory': wrap(ReliableInterface.prototype, 'close', () => {}),
    /** One of 20 times a program goes to sleep without arming its doorbell. */
    'lost-wake-up': wrapOnceIn(20, EndpointChannel.prototype, 'arm', () => true),
  },
  sockets: {
    /** One of ten reads is not counted as consumed. */
    'lost-window': wrapOnceIn(10, Stream.prototype, 'consume', call => call(0)),
    /** A program that stops reading in the middle of a fetch keeps more than its window. */
    'fetch-beyond-window': replaceGetter(Stream.prototype, 'windowGranted', 1 << 30),
    'lost-byte': lostByte,
    /** What a peer fetches of an offer after its close is not known, and yet more is sent. */
    'sends-after-close': wrap(Stream.prototype, 'handleClosed', function (call, how, received) {
      call(how, received)
      ;(this as unknown as { isCutOff: boolean }).isCutOff = false
    }),
  },
  raw: {
    /** One of 20 receives settles, and the one behind it without a byte. */
    'settles-two': wrapOnceIn(20, Operations.prototype, 'finishFirst', call => {
      call()
      call()
    }),
    /** A receive that is posted behind a message that waits does not get it. */
    'lost-message': wrapOnceIn(4, MessageReceiver.prototype, 'serve', () => {}),
    /** A send settles while its bytes are still read from the program's memory. */
    'settles-early': wrap(Stream.prototype, 'write', (call, ...args) => {
      call(...args)
      return true
    }),
  },
  promotion: {
    /** The peer's count of bytes that go by TCP is one more than it has sent. */
    'count-off-by-one': wrap(movesOf(PromotedHandle.prototype), 'handleCount', (call, count) =>
      call(BigInt.asUintN(64, count + 1n)),
    ),
    /** A direction goes back to TCP though the peer may still read TCP up to the count. */
    'back-too-early': wrap(movesOf(PromotedHandle.prototype), 'hasMoved', () => true),
    /** What is to be sent alone follows an offer, which nothing may follow. */
    'behind-an-offer': wrap(Stream.prototype, 'noteMoved', function (call) {
      const { zcopy } = this
      this.zcopy = undefined
      call()
      this.zcopy = zcopy
    }),
  },
  names: {
    /** One of ten commits does not reach those who watch. */
    'lost-change': wrapOnceIn(10, ChangeLog.prototype, 'append', (call, revision) => call(revision, [])),
    /** Leases never end. */
    'endless-lease': wrap(Image.prototype, 'expiredLeases', () => []),
    /** A client releases its names for itself alone. */
    'kept-name': wrap(NameApi.prototype, 'deregister', async () => 0),
  },
  bootstrap: {
    /** One of two searches that have found a listener is told that another candidate has won. */
    'loses-its-find': wrapOnceIn(2, Race.prototype, 'win', () => false),
    /** A server does not read the HELLO of every other client. */
    'no-answer': wrapOnceIn(2, HelloCallers.prototype, 'serve', () => {}),
  },
  peers: {
    /** A door does not know one of three listeners. */
    'unknown-at-the-door': wrapOnceIn(3, Door.prototype, 'admit', () => {}),
    /** A server does not read the HELLO of every other client. */
    'no-answer': wrapOnceIn(2, HelloCallers.prototype, 'serve', () => {}),
    /** One of four times the end of a peer is not noticed. */
    'misses-the-end': wrapOnceIn(4, SocketChannel.prototype, 'handlePeerGone', () => {}),
  },
  rpc: {
    /** One of 20 calls is made twice, as by a client that tries again. */
    'repeated-call': wrapOnceIn(20, RemoteService.prototype, 'call', (call, ...args) => {
      call(...args).catch(() => {})
      return call(...args)
    }),
    /** One of 20 results goes to the call before. */
    'answers-another': () => {
      let before = 0
      let count = 0
      return wrap(Link.prototype, 'answer', (call, slot, id, bytes, flag) => {
        const to = ++count % 20 === 0 ? before : id
        before = id
        call(slot, to, bytes, flag)
      })()
    },
    /** One of four credits for items is lost. */
    'lost-item-credit': wrapOnceIn(4, Flow.prototype, 'handleCredit', () => {}),
  },
  mixed: { 'lost-credit': lostCredit, 'lost-byte': lostByte },
}

/** Members of a promoted handle that are private. */
interface Moves {
  handleCount(count: bigint): void
  hasMoved(): boolean
}

function movesOf(prototype: PromotedHandle): Moves {
  return prototype as unknown as Moves
}

// biome-ignore lint/suspicious/noExplicitAny: of any method.
type Args<T, K extends keyof T> = T[K] extends (...args: infer A) => any ? A : never
// biome-ignore lint/suspicious/noExplicitAny: of any method.
type Result<T, K extends keyof T> = T[K] extends (...args: any) => infer R ? R : never
/** What runs in place of a method; `call` is the method as it was. */
type Instead<T, K extends keyof T> = (
  this: T,
  call: (...args: Args<T, K>) => Result<T, K>,
  ...args: Args<T, K>
) => Result<T, K>

function wrap<T extends object, K extends keyof T>(prototype: T, name: K, instead: Instead<T, K>): Plant {
  return () => {
    const original = prototype[name] as (this: T, ...args: Args<T, K>) => Result<T, K>
    const wrapped = function (this: T, ...args: Args<T, K>): Result<T, K> {
      return instead.call(this, (...changed) => original.apply(this, changed), ...args)
    }
    prototype[name] = wrapped as T[K]
    return () => {
      prototype[name] = original as T[K]
    }
  }
}

/** As `wrap`, for one of `count` calls. */
function wrapOnceIn<T extends object, K extends keyof T>(
  count: number,
  prototype: T,
  name: K,
  instead: Instead<T, K>,
): Plant {
  return () => {
    let calls = 0
    return wrap(prototype, name, function (call, ...args) {
      return ++calls % count === 0 ? instead.call(this, call, ...args) : call(...args)
    })()
  }
}

function replaceGetter(prototype: object, name: string, value: number): Plant {
  return () => {
    const before = Object.getOwnPropertyDescriptor(prototype, name) as PropertyDescriptor
    Object.defineProperty(prototype, name, { ...before, get: () => value })
    return () => void Object.defineProperty(prototype, name, before)
  }
}
