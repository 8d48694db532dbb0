import { readFile } from 'node:fs/promises'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { type Channel, ChannelGroup, type ChannelOptions, pollerStats } from '../../../am/index.ts'
import { channelOf } from '../../../am/message.ts'
import { drivers, openLoopbackPair } from '../../../nic/index.ts'
import { OwnerLog, sendRequest } from '../../support/channels.ts'
import { Child } from '../../support/child.ts'
import { patterned } from '../../support/frames.ts'
import { until } from '../../support/until.ts'

const SINK = 5
const ECHO = 10
const ANSWER = 20
const CPU_MS_MAX = 20

interface Pair {
  readonly a: ChannelGroup
  readonly b: ChannelGroup
  readonly toB: Channel
  readonly toA: Channel
}

async function openPair(t: Test, driverName: string, options: Partial<ChannelOptions> = {}): Promise<Pair> {
  const driver = drivers.get(driverName)
  if (driver === undefined) throw new Error(`no driver ${driverName}`)
  const offer = driver.offer({ queueSize: 64 * 1024 })
  const [near, far] = await Promise.all([driver.connect(offer.blob), offer.accepted])
  const a = new ChannelGroup()
  const b = new ChannelGroup()
  const toB = a.attach(near, { owner: new OwnerLog(), ...options })
  const toA = b.attach(far, { ...options, owner: new OwnerLog() })
  t.teardown(() => {
    a.close()
    b.close()
  })
  return { a, b, toB, toA }
}

async function untilAsleep({ toA, toB }: Pair): Promise<void> {
  await until('both to sleep', () => !toA.isHot && !toB.isHot)
}

/** A channel needs a reliable interface; what is below the reliability layer is tested there. */
const RELIABLE = [...drivers].filter(([name]) => name !== 'ethernet')

for (const [name, driver] of RELIABLE) {
  const availability = driver.availability()
  const skip = availability.usable ? false : availability.reason

  t.test(`over ${name} handlers run by themselves`, { skip }, async t => {
    const { a, b, toB } = await openPair(t, name)
    const answers: number[] = []
    b.setHandler(ECHO, message => message.reply(ANSWER, message.word(0) * 2))
    a.setHandler(ANSWER, message => answers.push(message.word(0)))
    for (let i = 0; i < 10; i++) sendRequest(toB, ECHO, [i])
    await until('all answers', () => answers.length === 10)
    t.strictSame(answers, [0, 2, 4, 6, 8, 10, 12, 14, 16, 18])
  })

  t.test(`over ${name} a pair that sleeps is woken by a message, again and again`, { skip }, async t => {
    const pair = await openPair(t, name)
    let answers = 0
    pair.b.setHandler(ECHO, message => message.reply(ANSWER))
    pair.a.setHandler(ANSWER, () => answers++)
    const { doorbells, sleeps } = pollerStats()
    for (let round = 1; round <= 5; round++) {
      await untilAsleep(pair)
      sendRequest(pair.toB, ECHO)
      await until('the answer', () => answers === round)
    }
    t.ok(pollerStats().doorbells - doorbells >= 5, 'b was rung each time')
    t.ok(pollerStats().sleeps - sleeps >= 10)
  })

  t.test(
    `over ${name} an owner that waits for room or credit is called until all is sent`,
    { skip },
    async t => {
      const COUNT = 2000
      let sent = 0
      let channel: Channel | undefined
      class Sender extends OwnerLog {
        override handleProgress(): void {
          if (channel === undefined) return
          while (sent < COUNT && sendRequest(channel, SINK, [sent], patterned(4000, sent)) === 0) sent++
        }

        override roomWanted(): number {
          return sent < COUNT ? 4000 : 0
        }
      }
      const owner = new Sender()
      const { b, toB } = await openPair(t, name, { owner })
      let received = 0
      let wrong = 0
      b.setHandler(SINK, message => {
        if (message.word(0) !== received || !message.copy().equals(patterned(4000, received))) wrong++
        received++
      })
      channel = toB
      channel.touch()
      await until('all messages', () => received === COUNT)
      t.equal(wrong, 0)
      t.strictSame(owner.errors, [])
    },
  )
}

t.test('a pair that never rests leaves timers and files their turns', async t => {
  const { a, b, toB } = await openPair(t, 'loopback')
  let isOver = false
  let count = 0
  b.setHandler(ECHO, message => message.reply(ANSWER))
  a.setHandler(ANSWER, message => {
    count++
    if (!isOver) sendRequest(channelOf(message) as Channel, ECHO)
  })
  for (let i = 0; i < 32; i++) sendRequest(toB, ECHO)
  for (let i = 0; i < 5; i++) {
    await sleep(1)
    t.ok((await readFile(new URL(import.meta.url))).length > 0)
  }
  isOver = true
  t.ok(count > 0)
})

t.test('a turn handles a bounded number of messages', async t => {
  const COUNT = 2000
  const { b, toB } = await openPair(t, 'loopback', { credits: 4096 })
  let handled = 0
  b.setHandler(SINK, () => handled++)
  for (let i = 0; i < COUNT; i++) if (sendRequest(toB, SINK, [i]) !== 0) t.fail(`message ${i} was refused`)
  let most = 0
  for (let before = 0; handled < COUNT; before = handled) {
    // Between two of our turns the poller has one or, when it was scheduled in between, two.
    await nextTurn()
    most = Math.max(most, handled - before)
  }
  t.ok(most > 0 && most <= 512, `at most ${most} in a turn`)
})

t.test('a handler may detach any channel, also its own, while others go on', async t => {
  const pairs = [
    await openPair(t, 'loopback'),
    await openPair(t, 'loopback'),
    await openPair(t, 'loopback'),
  ] as const
  let handled = 0
  pairs[1].b.setHandler(SINK, () => {
    pairs[0].b.detach(pairs[0].toA)
    pairs[1].b.detach(pairs[1].toA)
  })
  pairs[0].b.setHandler(SINK, () => {})
  pairs[2].b.setHandler(SINK, () => handled++)
  for (const { toB } of pairs) sendRequest(toB, SINK)
  await until('the message', () => handled === 1)
  await until('the closing', () => pairs[1].toA.state === 'closed')
  sendRequest(pairs[2].toB, SINK)
  await until('the next message', () => handled === 2)
  t.equal(pairs[0].toA.state, 'closed')
})

t.test('what a handler throws reaches the program, and no other message is lost by it', async t => {
  const child = new Child(t, new URL('../throwing-handler-child.js', import.meta.url))
  const { errors, handled } = await child.receive<{ errors: string[]; handled: number[][] }>()
  const numbers = Array.from({ length: 10 }, (_, i) => i)
  t.strictSame(errors, ['message 0', 'message 3', 'message 6', 'message 9'])
  t.strictSame(handled, [numbers, numbers])
  t.same(await child.end(), { code: 0, signal: null })
})

t.test('a handler that throws again and again keeps no other channel waiting', async t => {
  const child = new Child(t, new URL('../starving-handler-child.js', import.meta.url))
  t.strictSame(await child.receive(), { handled: 10 })
  t.same(await child.end(), { code: 0, signal: null })
})

t.test('nor does it by hand', async t => {
  const [sender, receiver] = [new ChannelGroup(), new ChannelGroup({ progress: 'manual' })]
  t.teardown(() => sender.close())
  t.teardown(() => receiver.close())
  const channels = [0, 1, 2].map(() => {
    const [near, far] = openLoopbackPair()
    receiver.attach(far, { owner: new OwnerLog() })
    return sender.attach(near, { owner: new OwnerLog() })
  })
  let handled = 0
  receiver.setHandler(SINK, () => void handled++)
  receiver.setHandler(ECHO, () => {
    throw new Error('as always')
  })
  const [first, second, third] = channels as [Channel, Channel, Channel]
  sendRequest(third, SINK)
  for (let i = 0; i < 3; i++) {
    for (const channel of [first, second]) sendRequest(channel, ECHO)
    t.throws(() => receiver.poll(), { message: 'as always' })
  }
  t.equal(handled, 1)
})

for (const [name, driver] of RELIABLE) {
  const availability = driver.availability()
  const skip = availability.usable ? false : availability.reason

  t.test(`over ${name} an idle channel uses no CPU, and keeps no program from ending`, { skip }, async t => {
    const child = new Child(t, new URL('../idle-channel-child.js', import.meta.url), [name])
    const { cpuMs, turns } = await child.receive<{ cpuMs: number; turns: number }>()
    t.equal(turns, 0, 'the poller has not moved')
    t.ok(cpuMs < CPU_MS_MAX, `${cpuMs} ms in 2 s`)
    t.same(await child.end(), { code: 0, signal: null }, child.stderr)
  })
}
