/** Two channels under the event loop. The first has a message again whenever its handler has thrown, which it always does. */

import { ChannelGroup } from '../../am/index.ts'
import { channelOf } from '../../am/message.ts'
import { openLoopbackPair } from '../../nic/index.ts'
import { OwnerLog, sendRequest } from '../support/channels.ts'
import { until } from '../support/until.ts'

const SINK = 5
const COUNT = 10

const sender = new ChannelGroup()
const receiver = new ChannelGroup()
const channels = [0, 1].map(() => {
  const [near, far] = openLoopbackPair()
  return {
    to: sender.attach(near, { owner: new OwnerLog() }),
    from: receiver.attach(far, { owner: new OwnerLog() }),
  }
})
const [bad, good] = channels as [(typeof channels)[0], (typeof channels)[0]]
let thrown = 0
let handled = 0
process.on('uncaughtException', () => {
  thrown++
  sendRequest(bad.to, SINK)
})
receiver.setHandler(SINK, message => {
  if (channelOf(message) === bad.from) throw new Error('as always')
  handled++
})
sendRequest(bad.to, SINK)
await until('some errors', () => thrown > COUNT)
for (let i = 0; i < COUNT; i++) sendRequest(good.to, SINK)
await until('all messages of the other', () => handled === COUNT)
await until('more errors', () => thrown > 2 * COUNT)
process.send?.({ handled })
process.exit()
