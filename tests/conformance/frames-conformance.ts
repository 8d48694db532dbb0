import type { Test } from 'tap'
import { BROKEN, copyBytes, NO_RESOURCE, OK, type VirtualInterface } from '../../nic/index.ts'
import { Collector, drain, fill, Handler, patterned, sendFrame } from '../support/frames.ts'
import { type Random, seededRandom } from '../support/random.ts'
import { type MakePair, type Pair, QUEUE_SIZE } from './pairs.ts'

export async function testFrames(t: Test, makePair: MakePair): Promise<void> {
  await testPlaces(t, makePair)
  await testDelivery(t, makePair)
  await testRefusals(t, makePair)
  await testPolling(t, makePair)
  await testShownWord(t, makePair)
  await testFrameWord(t, makePair)
}

async function testShownWord(t: Test, makePair: MakePair): Promise<void> {
  await t.test('a word that is shown is seen at once, before the frames, by the other side only', async t => {
    const [near, far] = await makePair(t)
    sendFrame(near, patterned(100, 1))
    if (far.shownWord === undefined) {
      near.showWord?.(7)
      return t.equal(far.shownWord, undefined, 'no memory is shared')
    }
    t.equal(far.shownWord, 0)
    for (const word of [7, -1, 0x7fffffff]) {
      near.showWord?.(word)
      t.equal(far.shownWord, word)
    }
    t.equal(near.shownWord, 0)
    t.strictSame(drain(far), [patterned(100, 1)])
    far.close()
    t.equal(far.shownWord, 0, 'nothing is seen by who has closed')
    near.close()
    near.showWord?.(8)
  })
}

async function testFrameWord(t: Test, makePair: MakePair): Promise<void> {
  await t.test('where memory tells of a frame, it tells of those that a poll would hand over', async t => {
    const [near, far] = await makePair(t)
    if (far.frameWord === undefined) {
      sendFrame(near, patterned(100, 1))
      return t.strictSame(drain(far), [patterned(100, 1)], 'only a poll can tell')
    }
    const isThere = ({ frameWord = -1, receiveWords }: VirtualInterface): boolean =>
      frameWord >= 0 && receiveWords[frameWord] !== 0
    t.notOk(isThere(far))
    sendFrame(near, patterned(100, 1))
    t.ok(isThere(far))
    t.notOk(isThere(near))
    t.strictSame(drain(far), [patterned(100, 1)])
    t.notOk(isThere(far))
    far.expectEnd?.()
    for (let sent = 0; sent <= 2 * QUEUE_SIZE; sent += 1000) {
      sendFrame(near, patterned(1000, 1))
      drain(far)
    }
    t.equal(far.poll(new Collector(), 1), 0, 'of one that is gone no more is taken than fitted')
    t.notOk(isThere(far), 'nor is it told of')
    far.close()
    t.equal(far.frameWord, -1)
    near.close()
  })
}

async function testPlaces(t: Test, makePair: MakePair): Promise<void> {
  await t.test('a frame is built in place, on a multiple of 8, as bytes and as words', async t => {
    const [near, far] = await makePair(t)
    const at = near.reserve(24)
    t.equal(at % 8, 0)
    near.sendWords[at >> 2] = 0x01020304
    near.sendBytes[at + 23] = 0xff
    near.commit(24)

    const collector = new Collector()
    t.equal(far.poll(collector, 1), 1)
    t.equal(collector.frames[0]?.readInt32LE(0), 0x01020304)
    t.equal(collector.frames[0]?.[23], 0xff)
  })

  await t.test('a frame is delivered in place, on a multiple of 8, as bytes and as words', async t => {
    const [near, far] = await makePair(t)
    for (let length = 4; length < 40; length++) sendFrame(near, patterned(length, length))
    let misplaced = 0
    let count = 0
    const sink = {
      handleFrame(bytes: Uint8Array, offset: number, length: number): void {
        count++
        const word = Buffer.from(bytes.buffer, bytes.byteOffset + offset, length).readInt32LE(0)
        if (offset % 8 !== 0 || far.receiveWords[offset >> 2] !== word) misplaced++
      },
    }
    while (far.poll(sink, 16) > 0) {}
    t.equal(count, 36)
    t.equal(misplaced, 0)
  })

  await t.test('a frame may be committed shorter than it was reserved', async t => {
    const [near, far] = await makePair(t)
    const at = near.reserve(1000)
    near.sendBytes.fill(7, at, at + 1000)
    near.commit(3)
    sendFrame(near, patterned(5, 1))
    t.strictSame(drain(far), [Buffer.from([7, 7, 7]), patterned(5, 1)])
  })

  await t.test('a frame whose body is memory of the caller, which may be used again at once', async t => {
    const [near, far] = await makePair(t)
    if (near.commitFrom === undefined) {
      sendFrame(near, patterned(100, 1))
      return t.strictSame(drain(far), [patterned(100, 1)], 'frames go from the memory of the queue only')
    }
    const random = seededRandom(t)
    const memory = Buffer.alloc(near.capabilities.frameMax)
    for (let round = 0; round < 50; round++) {
      const sent: Buffer[] = []
      for (let i = 0; i < 5; i++) {
        const head = patterned(8 * random.within(0, 4), i)
        const body = patterned(random.within(1, 1000), round)
        const at = near.reserve(head.length + body.length)
        near.sendBytes.set(head, at)
        body.copy(memory, i)
        near.commitFrom(head.length, memory, i, body.length)
        memory.fill(0)
        sent.push(Buffer.concat([head, body]))
        if (random.chance(0.5)) sendFrame(near, sent[0] as Buffer)
        else continue
        sent.push(sent[0] as Buffer)
      }
      t.strictSame(drain(far), sent)
    }
  })

  await t.test('also at the end of the queue, where only the shorter one fits', async t => {
    const [near, far] = await makePair(t)
    const random = seededRandom(t)
    let wrong = 0
    for (let passed = 0; passed < 3 * QUEUE_SIZE; ) {
      const content = patterned(random.within(0, 300), passed)
      const at = near.reserve(1000)
      near.sendBytes.set(content, at)
      near.commit(content.length)
      passed += content.length
      const [arrived] = drain(far)
      if (arrived?.equals(content) !== true) wrong++
    }
    t.equal(wrong, 0)
  })

  await t.test('a cancelled frame is not sent, and its room is not lost', async t => {
    const [near, far] = await makePair(t)
    const [fresh] = await makePair(t)
    const { frameMax } = near.capabilities
    for (let i = 0; i < 1000; i++) {
      near.reserve(frameMax)
      near.cancel()
    }
    t.equal(far.poll(new Collector(), 1), 0)
    t.equal(fill(near, 500).count, fill(fresh, 500).count)
    t.equal(near.reserve(500), NO_RESOURCE)
    t.strictSame(drain(far)[0], Buffer.alloc(500))
  })
}

async function testDelivery(t: Test, makePair: MakePair): Promise<void> {
  await t.test('frames of every length arrive in order with their contents', async t => {
    const [near, far] = await makePair(t)
    const { frameMax } = near.capabilities
    const lengths = [0, 1, 7, 8, 9, 63, 64, 65, 95, 96, 97, 1023, 4096, 5001, frameMax - 1, frameMax]
    lengths.forEach((length, i) => {
      t.equal(sendFrame(near, patterned(length, i)), OK)
    })
    const frames = drain(far)
    t.equal(frames.length, lengths.length)
    lengths.forEach((length, i) => {
      t.ok(frames[i]?.equals(patterned(length, i)), `the frame of ${length} bytes`)
    })
  })

  await t.test('frames of random lengths keep order and contents, many times round the queue', async t => {
    const pair = await makePair(t)
    t.same(exchangeAtRandom(pair, seededRandom(t), 64 * QUEUE_SIZE), { lost: 0, wrong: 0 })
  })

  await t.test('both ways at once do not disturb each other', async t => {
    const [near, far] = await makePair(t)
    for (let i = 0; i < 50; i++) {
      sendFrame(near, patterned(i, i))
      sendFrame(far, patterned(2 * i, 1000 + i))
    }
    const there = drain(far)
    const back = drain(near)
    for (let i = 0; i < 50; i++) {
      t.ok(there[i]?.equals(patterned(i, i)) && back[i]?.equals(patterned(2 * i, 1000 + i)), `frame ${i}`)
    }
  })
}

/** Sends and polls in turns of random length until `byteCount` bytes have passed. */
function exchangeAtRandom([near, far]: Pair, random: Random, byteCount: number) {
  const { frameMax } = near.capabilities
  const sent: Buffer[] = []
  let wrong = 0
  const sink = new Handler(content => {
    if (!sent.shift()?.equals(content)) wrong++
  })
  let passed = 0
  for (let number = 0; passed < byteCount; ) {
    for (let burst = random.within(0, 40); burst > 0; burst--, number++) {
      const frame = patterned(random.within(0, random.chance(0.1) ? frameMax : 300), number)
      if (sendFrame(near, frame) !== OK) break
      sent.push(frame)
      passed += frame.length
    }
    far.poll(sink, random.within(1, 40))
  }
  while (far.poll(sink, 64) > 0) {}
  return { lost: sent.length, wrong }
}

async function testRefusals(t: Test, makePair: MakePair): Promise<void> {
  await t.test('a frame longer than frameMax is a RangeError, and the interface goes on', async t => {
    const [near, far] = await makePair(t)
    t.throws(() => near.reserve(near.capabilities.frameMax + 1), RangeError)
    t.throws(() => near.reserve(2 ** 31), RangeError)
    t.equal(sendFrame(near, patterned(10, 1)), OK)
    t.strictSame(drain(far), [patterned(10, 1)])
  })

  await t.test(
    'a full queue refuses with NO_RESOURCE, and accepts again once the peer has polled',
    async t => {
      const [near, far] = await makePair(t)
      for (const length of [0, 64, 1000, near.capabilities.frameMax]) {
        const { count, refusal } = fill(near, length)
        t.equal(refusal, NO_RESOURCE)
        t.ok(count > 0, `${count} frames of ${length} bytes fit`)
        t.equal(near.state, 'open', 'a refusal is no failure')
        t.equal(far.poll(new Collector(), count + 1), count)
        t.equal(sendFrame(near, patterned(length, 1)), OK)
        t.strictSame(drain(far), [patterned(length, 1)])
      }
    },
  )

  await t.test('hasRoom says what reserve will do', async t => {
    const [near, far] = await makePair(t)
    const random = seededRandom(t)
    let disagreements = 0
    let refusals = 0
    for (let i = 0; i < 20_000; i++) {
      const length = random.within(0, random.chance(0.2) ? near.capabilities.frameMax : 2000)
      const hasRoom = near.hasRoom(length)
      const at = near.reserve(length)
      if (hasRoom !== at >= 0) disagreements++
      if (at >= 0) near.commit(length)
      else refusals++
      if (random.chance(0.1)) far.poll(new Collector(), random.within(1, 10))
    }
    t.equal(disagreements, 0)
    t.ok(refusals > 0)
  })
}

async function testPolling(t: Test, makePair: MakePair): Promise<void> {
  await t.test('poll of an empty queue hands over nothing', async t => {
    const [near, far] = await makePair(t)
    t.equal(near.poll(new Collector(), 10), 0)
    t.equal(far.poll(new Collector(), 10), 0)
  })

  await t.test('poll hands over no more frames than its limit, and the rest next time', async t => {
    const [near, far] = await makePair(t)
    for (let i = 0; i < 10; i++) sendFrame(near, patterned(20, i))
    const collector = new Collector()
    t.equal(far.poll(collector, 0), 0)
    t.equal(far.poll(collector, 3), 3)
    t.equal(collector.frames.length, 3)
    t.equal(far.poll(collector, 3), 3)
    t.equal(far.poll(collector, 100), 4)
    t.strictSame(
      collector.frames,
      Array.from({ length: 10 }, (_, i) => patterned(20, i)),
    )
  })

  await t.test('poll from within a handler throws, and loses nothing', async t => {
    const [near, far] = await makePair(t)
    for (let i = 0; i < 3; i++) sendFrame(near, patterned(20, i))
    const errors: unknown[] = []
    const sink = new Handler(() => {
      try {
        far.poll(new Collector(), 1)
      } catch (error) {
        errors.push(error)
      }
    })
    t.equal(far.poll(sink, 1), 1)
    t.equal(errors.length, 1)
    t.type(errors[0], Error)
    t.strictSame(drain(far), [patterned(20, 1), patterned(20, 2)])
  })

  await t.test(
    'what a handler throws passes through, and the next poll goes on with the next frame',
    async t => {
      const [near, far] = await makePair(t)
      for (let i = 0; i < 4; i++) sendFrame(near, patterned(20, i))
      let calls = 0
      const thrower = new Handler(() => {
        if (++calls === 2) throw new Error('from the handler')
      })
      t.throws(() => far.poll(thrower, 10), { message: 'from the handler' })
      t.equal(calls, 2)
      t.strictSame(drain(far), [patterned(20, 2), patterned(20, 3)])
      t.ok(fill(near, 1000).count >= 50, 'the room of the frame that was thrown at came back')
    },
  )

  await t.test('a handler may send by the interface that it was called from', async t => {
    const [near, far] = await makePair(t)
    for (let i = 0; i < 100; i++) sendFrame(near, patterned(30, i))
    const echo = new Handler(content => {
      const at = far.reserve(content.length)
      copyBytes(content, 0, far.sendBytes, at, content.length)
      far.commit(content.length)
    })
    t.equal(far.poll(echo, 100), 100)
    t.strictSame(
      drain(near),
      Array.from({ length: 100 }, (_, i) => patterned(30, i)),
    )
  })

  await t.test('a handler that closes its interface is called no more', async t => {
    const [near, far] = await makePair(t)
    for (let i = 0; i < 5; i++) sendFrame(near, patterned(30, i))
    let calls = 0
    const closer = new Handler(() => {
      calls++
      far.close()
    })
    t.not(far.poll(closer, 5), BROKEN)
    t.equal(calls, 1)
    t.equal(far.state, 'closed')
  })
}
