import t, { type Test } from 'tap'
import { EventLoop } from '../../../am/progress/event-loop.ts'
import { drivers } from '../../../nic/index.ts'
import { openChannelPair, openSide, type Side, sendRequest } from '../../support/channels.ts'

const SINK = 3
/** Six of the first 126, then one in 64. */
const ASKED_OF_1000 = 6 + Math.ceil((1000 - 126) / 64)

const shm = drivers.get('shm')
const availability = shm?.availability()
const skip = availability?.usable === true ? false : `no shared memory: ${availability?.reason}`

async function openShmPair(t: Test): Promise<[near: Side, far: Side]> {
  if (shm === undefined) throw new Error('there is no driver shm')
  const offer = shm.offer({ queueSize: 64 * 1024 })
  const [near, far] = await Promise.all([shm.connect(offer.blob), offer.accepted])
  const sides: [Side, Side] = [openSide(near), openSide(far)]
  for (const { group } of sides) {
    group.setHandler(SINK, () => {})
    t.teardown(() => group.close())
  }
  return sides
}

/** How often, of so many times that nothing comes, it was asked whether it may wait. */
function waitInVain(loop: EventLoop, { channel }: Side, times: number): number {
  let asked = 0
  const mayWait = (): boolean => {
    asked++
    return true
  }
  for (let i = 0; i < times; i++) if (loop.awaitFrame(mayWait, [channel])) throw new Error('nothing came')
  return asked
}

t.test(
  'where nothing comes a wait is tried half as often each time, down to once in 64',
  { skip },
  async t => {
    const [, far] = await openShmPair(t)
    t.equal(waitInVain(new EventLoop(), far, 1000), ASKED_OF_1000)
  },
)

t.test('what comes within a wait ends it, and the next is tried at once', { skip }, async t => {
  const [near, far] = await openShmPair(t)
  const loop = new EventLoop()
  waitInVain(loop, far, 3)
  const arrive = (): boolean => sendRequest(near.channel, SINK) >= 0
  t.equal(loop.awaitFrame(arrive, [far.channel]), false, 'not tried')
  for (let i = 0; i < 2; i++) loop.awaitFrame(arrive, [far.channel])
  t.ok(loop.awaitFrame(arrive, [far.channel]), 'tried')
  t.equal(far.group.poll(), 1)
  t.equal(waitInVain(loop, far, 1), 1)
})

t.test('with a frame there already it is up to `mayWait`', { skip }, async t => {
  const [near, far] = await openShmPair(t)
  sendRequest(near.channel, SINK)
  const loop = new EventLoop()
  t.equal(
    loop.awaitFrame(() => false, [far.channel]),
    false,
  )
  t.ok(loop.awaitFrame(() => true, [far.channel]))
})

t.test('there is no wait, and no driver is asked', { skip }, async t => {
  const [near, far] = await openShmPair(t)
  sendRequest(near.channel, SINK)
  const { channel } = far
  const asked = (): boolean => {
    throw new Error('asked')
  }
  const loop = new EventLoop()
  t.equal(loop.awaitFrame(asked, []), false, 'without a channel')
  t.equal(loop.awaitFrame(asked, new Array(9).fill(channel)), false, 'with nine')
  const [loopback] = openChannelPair()
  t.equal(loop.awaitFrame(asked, [channel, loopback.channel]), false, 'where one cannot tell')
  channel.maySpin = false
  t.equal(loop.awaitFrame(asked, [channel]), false, 'where others want the core')
  channel.maySpin = true
  far.group.close()
  t.equal(loop.awaitFrame(asked, [channel]), false, 'on a channel that is closed')
})
