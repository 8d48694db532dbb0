/**
 * Planted bugs: each breaks one rule of the product's code, in this process only, by a method that stands in for the
 * product's own. A simulation must find each of them.
 */

import { AckQueue } from '../../am/ack-queue.ts'
import { EndpointChannel } from '../../am/endpoint-channel.ts'
import { FrameWriter } from '../../am/frame-writer.ts'
import { Receiver } from '../../am/reliability/receiver.ts'
import { ACK_WORD, HEADER_SIZE, SACK_WORD } from '../../am/reliability/reliability-layout.ts'
import { RoundTrip } from '../../am/reliability/round-trip.ts'
import { Flow } from '../../am/rpc/flow.ts'
import { Link } from '../../am/rpc/link.ts'
import { RemoteService } from '../../am/rpc/remote-service.ts'
import { ReceiveBuffer } from '../../fastsockets/stream/receive-buffer.ts'
import { Stream } from '../../fastsockets/stream/stream.ts'
import type { Kind } from './simulate.ts'

/** Plants the bug; returns what removes it. */
type Plant = () => () => void

/** By the kind of system that must find them. */
export const PLANTS: Readonly<Record<Kind, Readonly<Record<string, Plant>>>> = {
  endpoints: {
    /** A frame that is missing is acknowledged once a later one has come. */
    'early-acknowledgement': () =>
      replace(
        Receiver.prototype,
        'putAcknowledgement',
        original =>
          function (words, at, isRiding) {
            original.call(this, words, at, isRiding)
            const isMissing =
              ((words[at + SACK_WORD] as number) | (words[at + SACK_WORD + 1] as number)) !== 0
            if (isMissing) words[at + ACK_WORD] = (words[at + ACK_WORD] as number) + 1
          },
      ),
    /** One of 20 acknowledgements of requests is lost. */
    'lost-credit': () => {
      let count = 0
      return replace(
        AckQueue.prototype,
        'dequeueRun',
        original =>
          function () {
            const run = original.call(this)
            return ++count % 20 === 0 ? 0 : run
          },
      )
    },
    /** One of 50 messages is handled twice. */
    'handled-twice': () => {
      let count = 0
      return replace(
        EndpointChannel.prototype,
        'handleFrame',
        original =>
          function (bytes, offset, length) {
            original.call(this, bytes, offset, length)
            if (++count % 50 === 0 && this.state === 'open') original.call(this, bytes, offset, length)
          },
      )
    },
    /** The checksum does not matter. */
    'no-checksum': () =>
      replace(
        Receiver.prototype,
        'land',
        original =>
          function (words, at, length) {
            return original.call(this, words, at, length) || (length >= HEADER_SIZE && length < 2000)
          },
      ),
    /** A region begins one byte late. */
    'region-off-by-one': () =>
      replace(
        FrameWriter.prototype,
        'putRegion',
        original =>
          function (offset, length) {
            original.call(this, length > 2000 ? offset + 1 : offset, length)
          },
      ),
    /** What is lost last is never sent again. */
    'no-time-out': () => replaceGetter(RoundTrip.prototype, 'timeoutMs', () => Number.POSITIVE_INFINITY),
    /** One of 20 times a program goes to sleep without arming its doorbell. */
    'lost-wake-up': () => {
      let count = 0
      return replace(
        EndpointChannel.prototype,
        'arm',
        original =>
          function () {
            return ++count % 20 === 0 || original.call(this)
          },
      )
    },
  },
  sockets: {
    /** One of ten reads is not counted as consumed. */
    'lost-window': () => {
      let count = 0
      return replace(
        Stream.prototype,
        'consume',
        original =>
          function (length) {
            original.call(this, ++count % 10 === 0 ? 0 : length)
          },
      )
    },
    /** A program that stops reading in the middle of a fetch keeps more than its window. */
    'fetch-beyond-window': () => replaceGetter(Stream.prototype, 'windowGranted', () => 1 << 30),
    /** A long piece enters the receive buffer without its first byte. */
    'lost-byte': () =>
      replace(
        ReceiveBuffer.prototype,
        'append',
        original =>
          function (source, offset, length) {
            const skipped = length > 2000 ? 1 : 0
            original.call(this, source, offset + skipped, length - skipped)
          },
      ),
    /** What a peer fetches of an offer after its close is not known, and yet more is sent. */
    'sends-after-close': () =>
      replace(
        Stream.prototype,
        'handleClosed',
        original =>
          function (how, received) {
            original.call(this, how, received)
            ;(this as unknown as { isCutOff: boolean }).isCutOff = false
          },
      ),
  },
  rpc: {
    /** One of 20 calls is made twice, as by a client that tries again. */
    'repeated-call': () => {
      let count = 0
      return replace(
        RemoteService.prototype,
        'call',
        original =>
          function (key, input, options) {
            if (++count % 20 === 0) original.call(this, key, input, options).catch(() => {})
            return original.call(this, key, input, options)
          },
      )
    },
    /** One of 20 results goes to the call before. */
    'answers-another': () => {
      let count = 0
      let before = 0
      return replace(
        Link.prototype,
        'answer',
        original =>
          function (slot, id, bytes, flag) {
            const to = ++count % 20 === 0 ? before : id
            before = id
            original.call(this, slot, to, bytes, flag)
          },
      )
    },
    /** One of four credits for items is lost. */
    'lost-item-credit': () => {
      let count = 0
      return replace(
        Flow.prototype,
        'handleCredit',
        original =>
          function (bytes, items) {
            if (++count % 4 !== 0) original.call(this, bytes, items)
          },
      )
    },
  },
}

type Method<T, K extends keyof T> = T[K] extends (...args: infer A) => infer R
  ? (this: T, ...args: A) => R
  : never

function replace<T extends object, K extends keyof T>(
  prototype: T,
  name: K,
  make: (original: Method<T, K>) => Method<T, K>,
): () => void {
  const original = prototype[name]
  prototype[name] = make(original as Method<T, K>) as T[K]
  return () => {
    prototype[name] = original
  }
}

function replaceGetter(prototype: object, name: string, get: () => number): () => void {
  const before = Object.getOwnPropertyDescriptor(prototype, name) as PropertyDescriptor
  Object.defineProperty(prototype, name, { ...before, get })
  return () => void Object.defineProperty(prototype, name, before)
}
