/** Two channels under the event loop, of which one has a handler that throws now and then. */

import { ChannelGroup } from '../../am/index.ts'
import { channelOf } from '../../am/message.ts'
import { openLoopbackPair } from '../../nic/index.ts'
import { OwnerLog, sendRequest } from '../support/channels.ts'
import { until } from '../support/until.ts'

const SINK = 5
const COUNT = 10

const errors: string[] = []
process.on('uncaughtException', error => errors.push(error.message))

const sender = new ChannelGroup()
const receiver = new ChannelGroup()
const handled: number[][] = [[], []]
const channels = handled.map(numbers => {
  const [near, far] = openLoopbackPair()
  const channel = sender.attach(near, { owner: new OwnerLog() })
  const arrivals = receiver.attach(far, { owner: new OwnerLog() })
  return { channel, arrivals, numbers }
})
receiver.setHandler(SINK, message => {
  const side = channels.find(({ arrivals }) => arrivals === channelOf(message))
  side?.numbers.push(message.word(0))
  if (side === channels[0] && message.word(0) % 3 === 0) throw new Error(`message ${message.word(0)}`)
})
for (let i = 0; i < COUNT; i++) for (const { channel } of channels) sendRequest(channel, SINK, [i])
await until('all messages', () => handled.every(numbers => numbers.length === COUNT))
process.send?.({ errors, handled })
process.disconnect?.()
