/** A peer that may write any frame: every field of it is a stranger's. */
import t, { type Test } from 'tap'
import type { Message } from '../../am/index.ts'
import { encodeRun, KIND_CREDIT, KIND_GET, KIND_REPLY, KIND_RETURN } from '../../am/message-layout.ts'
import { tagOf } from '../../am/tag.ts'
import { UNDELIVERABLE } from '../../am/undeliverable.ts'
import { Words } from '../../am/words.ts'
import { openLoopbackPair, type VirtualInterface } from '../../nic/index.ts'
import { RING_SIZE_MIN } from '../../nic/ring/ring-layout.ts'
import {
  CallLog,
  EndpointSide,
  type EndpointSideOptions,
  toPeer,
  withoutOneSided,
} from '../support/endpoint-channels.ts'
import { patterned } from '../support/frames.ts'
import { collectGarbage } from '../support/garbage.ts'
import { HostilePeer, openVictim, SEGMENT } from '../support/hostile-peer.ts'
import { block, drainMessages, sendMessage } from '../support/messages.ts'
import { type Random, seededRandom } from '../support/random.ts'

const SINK = 5
const ROUNDS = 500
const STEPS = 100
const TAG = 0x0123_4567_89ab_cdefn

/** The side that is attacked, busy with everything that an endpoint does. */
class Victim extends EndpointSide {
  readonly complaints: string[] = []
  readonly calls: CallLog[] = []
  readonly #random: Random
  readonly #held: number[] = []
  readonly #longMax: number

  constructor(end: VirtualInterface, random: Random, options: EndpointSideOptions) {
    super(end, options)
    this.#random = random
    this.#longMax = options.longMax ?? 0
    this.group.setHandler(0, message => this.#look(message))
    for (let index = 1; index < 256; index++) {
      if (random.chance(0.7)) this.group.setHandler(index, message => this.#handle(message))
    }
  }

  /** Something that an honest program does. */
  act(): void {
    const random = this.#random
    const size = this.segment.length
    const what = random.within(0, 7)
    if (what < 2) this.send(random.within(1, 255), [1, 2], random.bytes(random.within(0, 200)))
    if (what === 2) {
      const call = new CallLog()
      if (this.send(random.within(1, 255), [], undefined, call) === 0) this.calls.push(call)
    }
    if (what === 3) this.sendLong(random.within(1, 255), Buffer.alloc(random.within(0, 20_000)), 5)
    if (what === 4) {
      const into = random.within(0, size)
      this.get(random.within(1, 255), 5, random.within(0, size - into), into)
    }
    if (what > 4) this.#releaseOne()
  }

  #releaseOne(): void {
    const slot = this.#held.shift()
    if (slot === undefined) return
    if (this.#random.chance(0.5)) this.channel.release(slot)
    else this.channel.sendReply(slot, 9, new Words(), Buffer.alloc(Math.min(50, this.channel.mediumMax)))
  }

  #handle(message: Message): void {
    this.#look(message)
    if (!message.isRequest) return
    const random = this.#random
    const what = random.within(0, 4)
    const handler = random.within(1, 255)
    if (what === 0) message.reply(handler, 1, 2)
    if (what === 1) message.replyMedium(handler, message.payload().subarray(0, this.channel.mediumMax), 3)
    if (what === 2) {
      const length = random.within(0, Math.min(20_000, this.#longMax))
      message.replyLong(handler, Buffer.alloc(length), random.within(0, 100))
    }
    if (what === 3) this.#held.push(message.defer())
  }

  /** Everything about a message that could lie outside of what is ours. */
  #look(message: Message): void {
    const { bytes, offset, length } = message
    if (offset < 0 || offset + length > bytes.length) this.complaints.push(`${length} bytes at ${offset}`)
    const isOwn = bytes === this.segment || bytes.buffer !== this.memory.buffer
    if (!isOwn) this.complaints.push('bytes beside the segment')
    if (message.wordCount > 8) this.complaints.push(`${message.wordCount} words`)
    if (message.payload().length !== length || message.copy().length !== length)
      this.complaints.push('length')
  }
}

interface Outcome {
  readonly frames: number
  readonly state: string
}

/** One life of a channel with a hostile peer of which `malice` of the frames are wrong. */
function live(t: Test, random: Random, malice: number): Outcome {
  const [near, far] = openLoopbackPair(RING_SIZE_MIN)
  const credits = random.pick([1, 2, 8, 64])
  const segment = random.pick([0, 1, 100, 5000, 40_000])
  const tag = random.pick([0n, TAG])
  const { low, high } = tagOf(tag)
  const victim = new Victim(random.chance(0.5) ? withoutOneSided(far) : far, random, {
    credits,
    tag,
    segment,
    mediumMax: random.pick([0, 100, 65_536]),
    longMax: random.pick([0, 100, 2 ** 22, 2 ** 32 - 1]),
  })
  const hostile = new HostilePeer(near, random, { credits, segmentSize: segment, tag: [low, high] })
  // Some never listen: what is said to them piles up.
  const attention = random.pick([0, 0.1, 0.5])
  for (let step = 0; step < STEPS; step++) {
    for (let i = random.within(0, 4); i > 0; i--) victim.act()
    for (let i = random.within(0, 4); i > 0; i--) {
      if (random.chance(malice)) hostile.sayAnything()
      else hostile.sayWhatIsAllowed()
    }
    if (random.chance(0.7)) victim.group.poll(random.within(1, 20))
    if (random.chance(0.1)) victim.channel.arm()
    if (random.chance(attention)) hostile.listen()
  }
  const { state } = victim.channel
  if (victim.owner.errors.length !== (state === 'gone' ? 1 : 0)) t.fail(`${state}: ${victim.owner.errors}`)
  if (malice === 0 && state !== 'open') t.fail(`cut off: ${victim.owner.errors}`)
  end(t, victim, credits)
  return { frames: hostile.sent, state }
}

/** However it went: everything comes back once, and nothing was touched that is not the segment. */
function end(t: Test, victim: Victim, credits: number): void {
  victim.channel.lose(UNDELIVERABLE.PEER_DEAD)
  for (let turn = 0; turn < 100 && !victim.channel.isOver; turn++) victim.group.poll()
  if (!victim.channel.isOver || victim.channel.creditsLeft !== credits) {
    t.fail(`${victim.channel.creditsLeft} of ${credits} credits came back`)
  }
  if (!victim.isGuardWhole) t.fail('there was a write beside the segment')
  if (victim.complaints.length > 0) t.fail(victim.complaints.join(', '))
  for (const { outcomes } of victim.calls) if (outcomes.length !== 1) t.fail(`a call ended: ${outcomes}`)
}

t.test('a peer that breaks no rule is not cut off, however little sense it makes', async t => {
  const random = seededRandom(t)
  let frames = 0
  for (let round = 0; round < ROUNDS; round++) frames += live(t, random, 0).frames
  t.ok(frames > 20_000, `${frames} frames`)
})

t.test('a peer that breaks rules is cut off or got nowhere, and nothing is ever thrown', async t => {
  const random = seededRandom(t)
  const states = { open: 0, gone: 0 }
  let frames = 0
  for (let round = 0; round < ROUNDS; round++) {
    const outcome = live(t, random, random.pick([0.005, 0.02, 0.1, 1]))
    states[outcome.state as keyof typeof states]++
    frames += outcome.frames
  }
  t.ok(states.gone > 100 && states.open > 10, `${states.gone} were cut off, ${states.open} were not`)
  t.ok(frames > 10_000, `${frames} frames`)
})

/** Bytes that `act` leaves behind in this process. */
async function memoryOf(act: () => void): Promise<number> {
  const before = await memoryInUse()
  act()
  return (await memoryInUse()) - before
}

/** What is left when nothing more can be collected. */
async function memoryInUse(): Promise<number> {
  for (let least = Number.POSITIVE_INFINITY; ; ) {
    await collectGarbage()
    const { heapUsed, arrayBuffers } = process.memoryUsage()
    if (heapUsed + arrayBuffers > 0.99 * least) return heapUsed + arrayBuffers
    least = heapUsed + arrayBuffers
  }
}

t.test('a peer that asks for everything and never listens costs no memory', async t => {
  const credits = 64
  const length = 4 * 1024 * 1024
  const { wire, victim } = openVictim({ credits, segment: length })
  const bytes = await memoryOf(() => {
    for (let slot = 0; slot < credits; slot++)
      sendMessage(wire, { kind: KIND_GET, slot, region: [0, length] })
    for (let turn = 0; turn < 100; turn++) victim.group.poll()
  })
  t.equal(victim.channel.state, 'open')
  t.ok(bytes < 1024 * 1024, `${bytes} bytes for ${credits} gets of ${length}`)
  // Its 64 credits are all that it has.
  sendMessage(wire, { kind: KIND_GET, slot: 0, region: [0, length] })
  victim.group.poll()
  t.equal(victim.channel.state, 'gone')
})

t.test('a peer that is told again and again that there is no such handler, and never listens', async t => {
  const credits = 64
  const { wire, victim } = openVictim({ credits })
  block(victim.end)
  const bytes = await memoryOf(() => {
    for (let i = 0; i <= credits; i++) {
      sendMessage(wire, { handler: 99, slot: i % credits, payload: Buffer.alloc(60_000) })
      victim.group.poll()
    }
  })
  t.equal(victim.channel.state, 'gone')
  t.ok(bytes < 1024 * 1024, `${bytes} bytes`)
})

t.test('replies without a handler, to a side that goes on asking, are no more than its credits', async t => {
  const credits = 8
  const { wire, victim } = openVictim({ credits })
  let sent = 0
  while (victim.send(SINK) === 0) sent++
  block(victim.end)
  const bytes = await memoryOf(() => {
    for (let round = 0; round < 1000; round++) {
      while (victim.send(SINK) === 0) sent++
      for (let slot = 0; slot < credits && victim.channel.outstanding > 0; slot++) {
        sendMessage(wire, { kind: KIND_REPLY, slot, handler: 99, payload: Buffer.alloc(60_000) })
        victim.group.poll()
      }
    }
  })
  t.equal(victim.channel.state, 'open')
  t.equal(sent, credits, 'while replies wait to go back, no request goes')
  t.ok(bytes < 2 * credits * 60_000, `${bytes} bytes`)
})

t.test('a peer that answers a long message before it has all of it', async t => {
  for (const answer of [
    { kind: KIND_REPLY, slot: 0, handler: SINK },
    { kind: KIND_RETURN, slot: 0, handler: UNDELIVERABLE.TOO_LONG },
    { kind: KIND_CREDIT, acks: encodeRun(0, 1) },
  ]) {
    const [wire, far] = openLoopbackPair(RING_SIZE_MIN)
    const victim = new EndpointSide(withoutOneSided(far), { segment: SEGMENT })
    victim.group.setHandler(SINK, () => {})
    victim.group.setHandler(0, () => {})
    t.equal(victim.sendLong(SINK, patterned(500_000, 1), 0), 0)
    sendMessage(wire, answer)
    for (let turn = 0; turn < 100; turn++) {
      victim.group.poll()
      drainMessages(wire)
    }
    t.equal(victim.channel.creditsLeft, 8)
    t.equal(victim.send(SINK), 0)
    t.equal(victim.sendLong(SINK, patterned(500_000, 1), 0, toPeer()), 0)
  }
})
