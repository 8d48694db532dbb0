/**
 * What streams say to their peers, one function for each message of stream-layout.ts. All of them return whether the
 * message is out: without room it is not, and nothing has happened. Only a CONNECT needs a credit, as only it is answered.
 */
import type { Channel } from '../../am/index.ts'
import { copyBytes } from '../../nic/index.ts'
import type { Family } from '../host/unix-paths.ts'
import type { Stream } from './stream.ts'
import {
  BOUND,
  BYTES_WORDS,
  CLOSE,
  CLOSE_WORDS,
  CONNECT,
  CONNECT_WORDS,
  CONSUMED,
  CONSUMED_WORDS,
  DATA,
  FLAG_FIN,
  RD_COMPL,
  RD_COMPL_WORDS,
  SINK_AVAIL,
  SRC_AVAIL,
  WR_COMPL,
} from './stream-layout.ts'

/** What a client asks for. */
export interface Connect {
  readonly stream: Stream
  readonly port: number
  /** The address that was dialled. */
  readonly address: string
  readonly family: Family
}

export function sendBound(channel: Channel, transcript: Uint8Array): boolean {
  const at = channel.reserveRequest(BOUND, 0, transcript.length)
  if (at < 0) return false
  copyBytes(transcript, 0, channel.sendBytes, at, transcript.length)
  channel.commit(transcript.length)
  return true
}

export function sendConnect(channel: Channel, { stream, port, address, family }: Connect): boolean {
  const at = channel.reserveRequest(CONNECT, CONNECT_WORDS, address.length)
  if (at < 0) return false
  channel.putWord(0, stream.id)
  channel.putWord(1, port)
  channel.putWord(2, stream.receiving.size)
  channel.putWord(3, family)
  for (let i = 0; i < address.length; i++) channel.sendBytes[at + i] = address.charCodeAt(i)
  channel.commit(address.length)
  return true
}

/** Begins a DATA message: where its bytes go in the channel's `sendBytes`, or a refusal. Its `commit` sends it. */
export function reserveData(
  channel: Channel,
  to: number,
  sequence: number,
  consumed: number,
  length: number,
  flags: number,
): number {
  return reserveBytes(channel, DATA, to, sequence, consumed, flags, length)
}

export function sendFin(channel: Channel, to: number, sequence: number, consumed: number): boolean {
  if (reserveData(channel, to, sequence, consumed, 0, FLAG_FIN) < 0) return false
  channel.commitOneWay(0)
  return true
}

export function sendConsumed(channel: Channel, to: number, consumed: number): boolean {
  if (channel.reserveOneWay(CONSUMED, CONSUMED_WORDS, to, consumed, 0, 0, 0) < 0) return false
  channel.commitOneWay(0)
  return true
}

export function sendSourceAvailable(
  channel: Channel,
  to: number,
  sequence: number,
  consumed: number,
  length: number,
  key: Uint8Array,
): boolean {
  return sendPlace(channel, SRC_AVAIL, to, sequence, consumed, length, key)
}

export function sendSinkAvailable(
  channel: Channel,
  to: number,
  sequence: number,
  consumed: number,
  length: number,
  key: Uint8Array,
): boolean {
  return sendPlace(channel, SINK_AVAIL, to, sequence, consumed, length, key)
}

export function sendReadCompleted(channel: Channel, to: number, sequence: number, consumed: number): boolean {
  if (channel.reserveOneWay(RD_COMPL, RD_COMPL_WORDS, to, sequence, consumed, 0, 0) < 0) return false
  channel.commitOneWay(0)
  return true
}

export function sendWriteCompleted(
  channel: Channel,
  to: number,
  sequence: number,
  consumed: number,
  length: number,
): boolean {
  if (reserveBytes(channel, WR_COMPL, to, sequence, consumed, length, 0) < 0) return false
  channel.commitOneWay(0)
  return true
}

export function sendClose(stream: Stream, how: number, received: number): boolean {
  const { channel } = stream.channel
  if (channel.reserveOneWay(CLOSE, CLOSE_WORDS, stream.peerId, how, received, 0, 0) < 0) return false
  channel.commitOneWay(0)
  return true
}

/** A place in memory, ours, that stands for bytes of a stream. */
function sendPlace(
  channel: Channel,
  handler: number,
  to: number,
  sequence: number,
  consumed: number,
  length: number,
  key: Uint8Array,
): boolean {
  const at = reserveBytes(channel, handler, to, sequence, consumed, length, key.length)
  if (at < 0) return false
  copyBytes(key, 0, channel.sendBytes, at, key.length)
  channel.commitOneWay(key.length)
  return true
}

/** What all messages have in common that are, or stand for, the bytes of a stream from `sequence` on. */
function reserveBytes(
  channel: Channel,
  handler: number,
  to: number,
  sequence: number,
  consumed: number,
  last: number,
  payloadLength: number,
): number {
  return channel.reserveOneWay(handler, BYTES_WORDS, to, sequence, consumed, last, payloadLength)
}
