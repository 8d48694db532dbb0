import { openSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { type Driver, drivers, type Offer, OK } from '../../../nic/index.ts'
import {
  F_ADD_SEALS,
  F_SEAL_FUTURE_WRITE,
  F_SEAL_GROW,
  F_SEAL_SEAL,
  F_SEAL_SHRINK,
  F_SEAL_WRITE,
} from '../../../nic/posix/constants.ts'
import { requireLibc } from '../../../nic/posix/libc.ts'
import { RING_SIZE_MIN } from '../../../nic/ring/ring-layout.ts'
import {
  ANSWER_MAGIC,
  BLOB_NAME,
  BLOB_NONCE,
  HANDOFF_VERSION,
  MAGIC,
  socketName,
  VERSION,
} from '../../../nic/shm/handoff-layout.ts'
import { createSegment, segmentBytes } from '../../../nic/shm/segment.ts'
import type { Question } from '../../conformance/shm-peer-child.ts'
import { Child } from '../../support/child.ts'
import { drain, patterned, sendFrame } from '../../support/frames.ts'
import { answerBytes, Caller, FakeOfferer, openMemfd } from '../../support/handoff.ts'
import { NOBODY, noOtherUser } from '../../support/other-user.ts'
import { descriptorCount, memfdMappingCount } from '../../support/resources.ts'
import { eventually } from '../../support/until.ts'

const SIZE = RING_SIZE_MIN
/** Larger than any that is accepted. */
const LARGE = 1 << 25
/** More than are listened to at a time. */
const CROWD = 320
/** Callers of another user at a time. */
const OTHERS_MAX = 64
const shm = drivers.get('shm') as Driver
const availability = shm.availability()
if (!availability.usable) {
  t.plan(0, `SKIPPED: shm cannot be used here: ${availability.reason}`)
  process.exit()
}
const libc = requireLibc()
const peerFixture = new URL('../../conformance/shm-peer-child.js', import.meta.url)

const crowdFixture = new URL('../../support/crowd-child.js', import.meta.url)

/** The connecting side must close these as well as we do, so they are counted in this process, which is both. */
async function withoutLeak(t: Test, act: () => Promise<void>): Promise<void> {
  const before = descriptorCount()
  await act()
  t.equal(descriptorCount(), before, 'no descriptor is left')
  t.equal(memfdMappingCount(), 0, 'no mapping is left')
}

async function assertStillStands(t: Test, offer: Offer): Promise<void> {
  const [near, far] = await Promise.all([shm.connect(offer.blob), offer.accepted])
  sendFrame(near, patterned(30, 1))
  t.strictSame(drain(far), [patterned(30, 1)])
  near.close()
  far.close()
}

t.test('the first offer opens the listener, which stays', async t => {
  await assertStillStands(t, shm.offer({ queueSize: SIZE }))
})

t.test('the segment that is passed can neither shrink, nor grow, nor lose its seals', async t => {
  await withoutLeak(t, async () => {
    const offer = shm.offer({ queueSize: SIZE })
    const caller = new Caller(offer.blob)
    caller.say(caller.request())
    const { descriptors } = await caller.answer()
    t.equal(descriptors.length, 1)
    const segment = descriptors[0] as number
    for (const size of [0, 2 * segmentBytes(SIZE)]) {
      // errno is read at once: what follows makes system calls of its own.
      const outcome = [libc.ftruncate(segment, size), libc.errno()]
      t.strictSame(outcome, [-1, constants.errno.EPERM])
    }
    t.equal(libc.fcntl(segment, F_ADD_SEALS, F_SEAL_SEAL), -1)
    for (const descriptor of descriptors) libc.close(descriptor)
    caller.close()
    const end = await offer.accepted
    end.close()
  })
})

t.test('strangers who call', async t => {
  const request = (caller: Caller): Buffer => caller.request()
  const sayings: [what: string, say: (caller: Caller) => void][] = [
    ['garbage', caller => caller.say(Buffer.from('GET / HTTP/1.1\r\n\r\n'))],
    ['one byte', caller => caller.say(Buffer.from([1]))],
    ['a great deal', caller => void caller.trySay(Buffer.alloc(100_000, 0x46))],
    ['a request cut short', caller => caller.say(request(caller).subarray(0, 31))],
    ['a request with another magic', caller => caller.say(request(caller).fill(0, 0, 4))],
    ['a request of another version', caller => caller.say(request(caller).fill(9, VERSION, VERSION + 4))],
    ['a request with another nonce', caller => caller.say(request(caller).fill(9, 8, 24))],
    ['nothing but good-bye', caller => caller.close()],
  ]
  for (const [what, say] of sayings) {
    await t.test(`a stranger who says ${what} is hung up on, and the offer still stands`, async t => {
      await withoutLeak(t, async () => {
        const offer = shm.offer({ queueSize: SIZE })
        const caller = new Caller(offer.blob)
        say(caller)
        if (what !== 'nothing but good-bye') {
          await caller.untilHungUp()
          caller.close()
        }
        await assertStillStands(t, offer)
      })
    })
  }

  await t.test('unexpected descriptors are closed', async t => {
    await withoutLeak(t, async () => {
      const before = descriptorCount()
      const offer = shm.offer({ queueSize: SIZE })
      const caller = new Caller(offer.blob)
      try {
        caller.say(caller.request(), [0, 1, 2])
      } catch (error) {
        // Since Linux 6.16 they are refused on the way.
        t.match(error, { code: 'ERR_NIC_SYSTEM', errno: constants.errno.EPERM })
        caller.say(caller.request())
      }
      const { descriptors } = await caller.answer()
      const end = await offer.accepted
      t.equal(descriptorCount() - descriptors.length, before + 2, 'one for each side of the connection')
      for (const descriptor of descriptors) libc.close(descriptor)
      end.close()
      caller.close()
    })
  })

  await t.test('a silent stranger is hung up on in the end, and blocks no caller', async t => {
    await withoutLeak(t, async () => {
      const offer = shm.offer({ queueSize: SIZE })
      const caller = new Caller(offer.blob)
      await assertStillStands(t, offer)
      t.equal(caller.isHungUp(), false)
      await caller.untilHungUp()
      caller.close()
    })
  })

  await t.test('a crowd of silent strangers is hung up on, and the offer still stands', async t => {
    await withoutLeak(t, async () => {
      const offer = shm.offer({ queueSize: SIZE, timeoutMs: 20_000 })
      const callers: Caller[] = []
      for (let i = 0; i < CROWD; i++) {
        callers.push(new Caller(offer.blob))
        // The backlog takes no more than 128 at a time, and a turn of the event loop accepts one.
        await nextTurn()
      }
      for (const caller of callers) {
        await caller.untilHungUp()
        caller.close()
      }
      await assertStillStands(t, offer)
    })
  })
})

t.test('offering sides that break the rules', async t => {
  const file = (): number => {
    const directory = t.testdir({ segment: Buffer.alloc(segmentBytes(SIZE)) })
    return openSync(join(directory, 'segment'), 'r+')
  }
  const VIOLATION = 'ERR_NIC_PROTOCOL_VIOLATION'
  const FAILED = 'ERR_NIC_CONNECT_FAILED'
  const tooSmall = segmentBytes(SIZE) - 4096
  const sized = F_SEAL_SHRINK | F_SEAL_GROW
  const sealed = (seals: number) => (): [Buffer, number[]] => [
    answerBytes(),
    [openMemfd(undefined, sized | seals)],
  ]

  type Make = () => [answer: Buffer, descriptors: number[]]
  const answers: [what: string, code: string, make: Make][] = [
    ['an unsealed segment', VIOLATION, () => [answerBytes(), [openMemfd(undefined, 0)]]],
    ['one that may shrink', VIOLATION, () => [answerBytes(), [openMemfd(undefined, F_SEAL_GROW)]]],
    ['one that may grow', VIOLATION, () => [answerBytes(), [openMemfd(undefined, F_SEAL_SHRINK)]]],
    ['one that may not be written', VIOLATION, sealed(F_SEAL_WRITE)],
    ['one that others may not write', VIOLATION, sealed(F_SEAL_FUTURE_WRITE)],
    ['a segment that is too small', VIOLATION, () => [answerBytes(), [openMemfd(tooSmall)]]],
    ['an empty segment', VIOLATION, () => [answerBytes(), [openMemfd(0)]]],
    ['a ring of no size', VIOLATION, () => [answerBytes(0), [openMemfd()]]],
    ['a ring of an odd size', VIOLATION, () => [answerBytes(SIZE + 8), [openMemfd()]]],
    ['a ring of 32 MiB', VIOLATION, () => [answerBytes(LARGE), [openMemfd(segmentBytes(LARGE))]]],
    ['a ring of 4 GiB', VIOLATION, () => [answerBytes(0xffff_ffff), [openMemfd()]]],
    ['two descriptors', VIOLATION, () => [answerBytes(), [openMemfd(), openMemfd()]]],
    ['eight descriptors', VIOLATION, () => [answerBytes(), Array.from({ length: 8 }, () => openMemfd())]],
    ['no descriptors', FAILED, () => [answerBytes(), []]],
    ['an answer cut short', FAILED, () => [answerBytes().subarray(1), [openMemfd()]]],
    ['another magic', FAILED, () => [writeWord(answerBytes(), MAGIC, ANSWER_MAGIC + 1), [openMemfd()]]],
    [
      'another version',
      FAILED,
      () => [writeWord(answerBytes(), VERSION, HANDOFF_VERSION + 1), [openMemfd()]],
    ],
  ]
  const offerer = new FakeOfferer()
  t.teardown(() => offerer.close())
  for (const [what, code, make] of answers) {
    await t.test(`an answer with ${what} is refused with ${code}, and nothing is left behind`, async t => {
      await withoutLeak(t, async () => {
        const connected = shm.connect(offerer.blob)
        const refused = t.rejects(connected, { name: 'NicError', code })
        await offerer.takeRequest()
        offerer.answer(...make())
        await refused
        await connected.then(
          end => end.close(),
          () => {},
        )
        offerer.hangUp()
      })
    })
  }

  const noMemory: [what: string, make: () => number][] = [
    ['an ordinary file', file],
    ['a device', () => openSync('/dev/zero', 'r+')],
  ]
  for (const [what, make] of noMemory) {
    await t.test(
      `${what} as the segment is refused, and is not closed: that may wait for the peer`,
      async t => {
        const before = descriptorCount()
        const refused = t.rejects(shm.connect(offerer.blob), { code: VIOLATION })
        await offerer.takeRequest()
        offerer.answer(answerBytes(), [make()])
        await refused
        offerer.hangUp()
        t.equal(descriptorCount(), before + 1)
        t.equal(memfdMappingCount(), 0)
      },
    )
  }

  await t.test('an offering side that hangs up is ERR_NIC_CONNECT_FAILED', async t => {
    await withoutLeak(t, async () => {
      const refused = t.rejects(shm.connect(offerer.blob), { code: FAILED })
      await offerer.takeRequest()
      offerer.hangUp()
      await refused
    })
  })

  await t.test('an offering side that never answers is ERR_NIC_CONNECT_FAILED', async t => {
    await withoutLeak(t, async () => {
      const refused = t.rejects(shm.connect(offerer.blob, { timeoutMs: 10 }), { code: FAILED })
      await offerer.takeRequest()
      await refused
      offerer.hangUp()
    })
  })

  await t.test('an offering side that is not there any more is an error with its syscall', async t => {
    const gone = new FakeOfferer()
    gone.close()
    await withoutLeak(t, async () => {
      await t.rejects(shm.connect(gone.blob), { code: 'ERR_NIC_SYSTEM', syscall: 'connect' })
    })
  })
})

function writeWord(bytes: Buffer, at: number, word: number): Buffer {
  bytes.writeUInt32LE(word, at)
  return bytes
}

const otherUserMissing = noOtherUser(peerFixture)
if (otherUserMissing) t.comment(`SKIPPED: another user: ${otherUserMissing}`)

t.test('another user', { skip: otherUserMissing }, async t => {
  type Answer = {
    error?: { code: string }
    capabilities?: { rdmaRead: boolean; rdmaReason?: string }
    uid: number
  }
  const callAsNobody = (
    t: Test,
    offer: Offer,
    allowEverybody: boolean,
  ): { child: Child; answer: Promise<Answer> } => {
    const child = new Child(t, peerFixture, [], { uid: NOBODY, gid: NOBODY })
    const blob = Buffer.from(offer.blob).toString('base64')
    return {
      child,
      answer: child.ask({ ask: 'connect', blob, allowEverybody, readsPeer: true } satisfies Question),
    }
  }

  await t.test('the connecting side refuses an offer of another user', async t => {
    const offer = shm.offer({ queueSize: SIZE })
    const { error } = await callAsNobody(t, offer, false).answer
    t.equal(error?.code, 'ERR_NIC_PEER_REFUSED')
    await assertStillStands(t, offer)
  })

  await t.test('the offering side refuses a caller of another user, and passes nothing', async t => {
    const offer = shm.offer({ queueSize: SIZE })
    const { answer } = callAsNobody(t, offer, true)
    await t.rejects(offer.accepted, { code: 'ERR_NIC_PEER_REFUSED', message: /65534/ })
    const { error } = await answer
    t.equal(error?.code, 'ERR_NIC_CONNECT_FAILED')
    t.equal(memfdMappingCount(), 0)
  })

  await t.test('a crowd of another user has few places, and blocks no caller', async t => {
    const offer = shm.offer({ queueSize: SIZE, timeoutMs: 20_000 })
    const before = descriptorCount()
    const name = socketName(Buffer.from(offer.blob).subarray(BLOB_NAME, BLOB_NONCE))
    const crowd = new Child(t, crowdFixture, [name, String(CROWD)], { uid: NOBODY, gid: NOBODY })
    await crowd.receive()
    await eventually('most of them to be gone', async () => {
      const { closed } = await crowd.ask<{ closed: number }>({})
      return closed >= CROWD - OTHERS_MAX
    })
    // The channel to the child needs some, too.
    t.ok(descriptorCount() <= before + OTHERS_MAX + 8, `${descriptorCount() - before} descriptors more`)
    await assertStillStands(t, offer)
  })

  await t.test(
    'with the consent of both sides another user is a peer, whose process is left alone',
    async t => {
      const seen: number[] = []
      const allowUid = (uid: number): boolean => seen.push(uid) > 0
      const offer = shm.offer({ queueSize: SIZE, allowUid, readsPeer: true })
      const { child, answer } = callAsNobody(t, offer, true)
      const end = await offer.accepted
      const { capabilities, uid } = await answer
      t.equal(uid, NOBODY)
      t.strictSame(seen, [NOBODY])
      t.equal(capabilities?.rdmaRead, false)
      t.match(capabilities?.rdmaReason ?? '', /the peer is user 0, not 65534/)
      t.match(end.capabilities.rdmaReason ?? '', /the peer is user 65534, not 0/)

      await child.ask({ ask: 'send', count: 3, length: 50 } satisfies Question)
      t.equal(drain(end).length, 3)
      const access = { remoteRead: true, remoteWrite: true }
      t.throws(() => end.register(new Uint8Array(8), access), { code: 'ERR_NIC_UNAVAILABLE' })
      end.close()
    },
  )
})

t.test('two hundred connections leave no descriptor and no mapping behind', async t => {
  await withoutLeak(t, async () => {
    for (let i = 0; i < 200; i++) {
      const offer = shm.offer({ queueSize: SIZE })
      const [near, far] = await Promise.all([shm.connect(offer.blob), offer.accepted])
      if (sendFrame(near, patterned(100, i)) !== OK) t.fail('a new queue is full')
      if (!drain(far)[0]?.equals(patterned(100, i))) t.fail('another frame arrived')
      near.close()
      far.close()
    }
  })
})

t.test('of many who connect at once all are accepted, however busy the offering side is', async t => {
  await withoutLeak(t, async () => {
    const offers = Array.from({ length: CROWD }, () => shm.offer({ queueSize: SIZE }))
    // No caller is accepted before the last has called: it is the same thread.
    const ends = await Promise.allSettled(offers.map(({ blob }) => shm.connect(blob)))
    t.strictSame(
      ends.filter(({ status }) => status === 'rejected'),
      [],
    )
    for (const end of ends) if (end.status === 'fulfilled') end.value.close()
    for (const [i, { accepted, cancel }] of offers.entries()) {
      if (ends[i]?.status === 'rejected') cancel()
      else (await accepted).close()
    }
  })
})

t.test('an unclaimed segment is closed with its descriptor', async t => {
  await withoutLeak(t, async () => {
    libc.close(createSegment(libc, SIZE))
    for (let i = 0; i < 50; i++) shm.offer({ queueSize: SIZE }).cancel()
  })
})
