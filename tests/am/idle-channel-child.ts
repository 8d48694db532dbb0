/** A program with a connected pair of channels that says one thing and then has nothing to say for two seconds. */
import { setTimeout as sleep } from 'node:timers/promises'
import { ChannelGroup, pollerStats } from '../../am/index.ts'
import { drivers } from '../../nic/index.ts'
import { OwnerLog, sendRequest } from '../support/channels.ts'
import { until } from '../support/until.ts'

const MEASURED_MS = 2000
const ECHO = 10
const ANSWER = 20

const driver = drivers.get(process.argv[2] as string)
if (driver === undefined) throw new Error(`no driver ${process.argv[2]}`)
process.channel?.unref()
const offer = driver.offer()
const [near, far] = await Promise.all([driver.connect(offer.blob), offer.accepted])

const a = new ChannelGroup()
const b = new ChannelGroup()
const channels = [
  a.attach(near, { owner: new OwnerLog() }),
  b.attach(far, { owner: new OwnerLog() }),
] as const
let answers = 0
a.setHandler(ANSWER, () => answers++)
b.setHandler(ECHO, message => message.reply(ANSWER))
sendRequest(channels[0], ECHO)
await until('the answer', () => answers === 1)
await until('both to sleep', () => channels.every(channel => !channel.isHot))

const turns = pollerStats().turns
const before = process.cpuUsage()
await sleep(MEASURED_MS)
const { user, system } = process.cpuUsage(before)
process.send?.({ cpuMs: (user + system) / 1000, turns: pollerStats().turns - turns })
