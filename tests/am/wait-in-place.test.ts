import t, { type Test } from 'tap'
import { WaitInPlace } from '../../am/wait-in-place.ts'
import { drivers } from '../../nic/index.ts'
import { openChannelPair, openSide, type Side, sendRequest } from '../support/channels.ts'

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
function waitInVain(wait: WaitInPlace, { channel }: Side, times: number): number {
  let asked = 0
  const mayWait = (): boolean => {
    asked++
    return true
  }
  for (let i = 0; i < times; i++) if (wait.awaitWork([channel], mayWait)) throw new Error('nothing came')
  return asked
}

t.test(
  'where nothing comes a wait is tried half as often each time, down to once in 64',
  { skip },
  async t => {
    const [, far] = await openShmPair(t)
    t.equal(waitInVain(new WaitInPlace(), far, 1000), ASKED_OF_1000)
  },
)

t.test('what comes within a wait ends it, and the next is tried at once', { skip }, async t => {
  const [near, far] = await openShmPair(t)
  const wait = new WaitInPlace()
  waitInVain(wait, far, 3)
  const arrive = (): boolean => sendRequest(near.channel, SINK) >= 0
  t.equal(wait.awaitWork([far.channel], arrive), false, 'not tried')
  for (let i = 0; i < 2; i++) wait.awaitWork([far.channel], arrive)
  t.ok(wait.awaitWork([far.channel], arrive), 'tried')
  t.equal(far.group.poll(), 1)
  t.equal(waitInVain(wait, far, 1), 1)
})

t.test('with a frame there already it is up to `mayWait`', { skip }, async t => {
  const [near, far] = await openShmPair(t)
  sendRequest(near.channel, SINK)
  const wait = new WaitInPlace()
  t.equal(
    wait.awaitWork([far.channel], () => false),
    false,
  )
  t.ok(wait.awaitWork([far.channel], () => true))
})

t.test('there is no wait, and nobody is asked', { skip }, async t => {
  const [near, far] = await openShmPair(t)
  sendRequest(near.channel, SINK)
  const { channel } = far
  const asked = (): boolean => {
    throw new Error('asked')
  }
  const wait = new WaitInPlace()
  t.equal(wait.awaitWork([], asked), false, 'without a channel')
  t.equal(wait.awaitWork(new Array(9).fill(channel), asked), false, 'with nine')
  const [loopback] = openChannelPair()
  t.equal(wait.awaitWork([channel, loopback.channel], asked), false, 'where one cannot tell')
  channel.maySpin = false
  t.equal(wait.awaitWork([channel], asked), false, 'where others want the core')
  channel.maySpin = true
  far.group.close()
  t.equal(wait.awaitWork([channel], asked), false, 'on a channel that is closed')
})
