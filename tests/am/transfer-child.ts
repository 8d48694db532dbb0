/** The far side of a large transfer: says the checksum of every piece that it is given or asked for. */
import { createHash } from 'node:crypto'
import { type Message, openEndpoint } from '../../am/index.ts'
import { optionsOf } from '../support/driver-lists.ts'
import { ANSWER, ECHO, SINK } from './endpoint-questions.ts'

const [listName, segment] = process.argv.slice(2)
const endpoint = await openEndpoint({ ...optionsOf(listName), segment: Number(segment) })

function replyChecksum(message: Message, bytes: Uint8Array): void {
  const digest = createHash('sha1').update(bytes).digest()
  const words = Array.from({ length: 5 }, (_, i) => digest.readInt32LE(4 * i))
  message.reply(ANSWER, message.word(0), ...words)
}

endpoint.setHandler(SINK, message => replyChecksum(message, message.payload()))
/** Of the bytes at an offset (word 1, in pages of 4 KiB); word 2 is their number. */
endpoint.setHandler(ECHO, message => {
  const offset = message.word(1) * 4096
  replyChecksum(message, endpoint.segment.subarray(offset, offset + message.word(2)))
})
process.send?.({ name: endpoint.name })
