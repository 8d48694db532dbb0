/** The messages of sockets as a peer of any morals would send them over a bare channel, and hear them. */
import type { Channel, ChannelGroup } from '../../am/index.ts'
import { KIND_REQUEST, NO_SLOT } from '../../am/message-layout.ts'
import {
  CLOSE,
  CONSUMED,
  DATA,
  RD_COMPL,
  SINK_AVAIL,
  SRC_AVAIL,
  WR_COMPL,
} from '../../fastsockets/stream/stream-layout.ts'
import { copyBytes, type VirtualInterface } from '../../nic/index.ts'
import { sendMessage } from './messages.ts'

/** Handlers of messages that take no credit and are never answered. */
export const ONE_WAY = [DATA, CONSUMED, CLOSE, SRC_AVAIL, RD_COMPL, SINK_AVAIL, WR_COMPL] as const

export interface Said {
  readonly handler: number
  readonly words: number[]
  readonly payload: Buffer
}

/** False if there is no credit or room for it. */
export function say(
  channel: Channel,
  handler: number,
  words: readonly number[],
  payload: Uint8Array = new Uint8Array(0),
): boolean {
  if (isOneWay(handler)) return sayOneWay(channel.end, handler, words, payload)
  const at = channel.reserveRequest(handler, words.length, payload.length)
  if (at < 0) return false
  for (const [i, word] of words.entries()) channel.putWord(i, word)
  copyBytes(payload, 0, channel.sendBytes, at, payload.length)
  channel.commit(payload.length)
  return true
}

export function sayOneWay(
  end: VirtualInterface,
  handler: number,
  words: readonly number[],
  payload: Uint8Array = new Uint8Array(0),
): boolean {
  return sendMessage(end, {
    kind: KIND_REQUEST,
    handler,
    slot: NO_SLOT,
    words,
    payload: Buffer.from(payload),
  })
}

/** Calls `listener` with each message for `handler`, which has four words: those that were not sent are 0. */
export function hear(group: ChannelGroup, handler: number, listener: (said: Said) => void): void {
  if (isOneWay(handler)) {
    group.handlers.setOneWay(handler, (words, wordCount, bytes, offset, length) =>
      listener({
        handler,
        words: Array.from({ length: 4 }, (_, i) => (i < wordCount ? (words[i] as number) : 0)),
        payload: Buffer.from(bytes.subarray(offset, offset + length)),
      }),
    )
    return
  }
  group.setHandler(handler, message =>
    listener({
      handler,
      words: Array.from({ length: 4 }, (_, i) => message.word(i)),
      payload: message.copy(),
    }),
  )
}

export function isOneWay(handler: number): boolean {
  return (ONE_WAY as readonly number[]).includes(handler)
}
