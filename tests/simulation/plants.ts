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

/** Plants the bug; returns what removes it. */
type Plant = () => () => void

export const PLANTS: Readonly<Record<string, Plant>> = {
  /** A frame that is missing is acknowledged once a later one has come. */
  'early-acknowledgement': () =>
    replace(
      Receiver.prototype,
      'putAcknowledgement',
      original =>
        function (words, at, isRiding) {
          original.call(this, words, at, isRiding)
          const isMissing = ((words[at + SACK_WORD] as number) | (words[at + SACK_WORD + 1] as number)) !== 0
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
  'no-time-out': () => {
    const before = Object.getOwnPropertyDescriptor(RoundTrip.prototype, 'timeoutMs') as PropertyDescriptor
    Object.defineProperty(RoundTrip.prototype, 'timeoutMs', {
      ...before,
      get: () => Number.POSITIVE_INFINITY,
    })
    return () => void Object.defineProperty(RoundTrip.prototype, 'timeoutMs', before)
  },
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
