import t from 'tap'
import { BROKEN, CLOSED, openLoopbackPair } from '../../../nic/index.ts'
import { FRAME_HEADER_SIZE, FRAME_STAMP, HEAD_WORD, RING_SIZE_MIN } from '../../../nic/ring/ring-layout.ts'
import { Collector, drain, fill, patterned, sendFrame } from '../../support/frames.ts'
import { sendControlOf } from '../../support/ring-memory.ts'

t.test('an interface whose peer publishes nonsense is broken, and says what the peer did', async t => {
  const [near, far] = openLoopbackPair(RING_SIZE_MIN)
  near.sendWords[FRAME_STAMP / 4] = 4
  t.equal(far.poll(new Collector(), 1), BROKEN)
  t.equal(far.state, 'broken')
  t.match(far.failure, {
    name: 'NicError',
    code: 'ERR_NIC_PROTOCOL_VIOLATION',
    message: /frame at 0 is stamped 4/,
  })
  t.equal(far.poll(new Collector(), 1), BROKEN)
  t.equal(far.arm(0), false)
  t.equal(near.state, 'open')
})

t.test('an interface whose peer releases nonsense is broken, and says what the peer did', async t => {
  const [near, far] = openLoopbackPair(RING_SIZE_MIN)
  fill(near, 1000)
  sendControlOf(near)[HEAD_WORD] = 4
  t.equal(near.reserve(1000), BROKEN)
  t.equal(near.state, 'broken')
  t.match(near.failure, {
    name: 'NicError',
    code: 'ERR_NIC_PROTOCOL_VIOLATION',
    message: /head moved from 0 to 4/,
  })
  t.equal(far.state, 'open')
})

t.test('whatever finds the violation, poll answers BROKEN from then on', async t => {
  const [near, far] = openLoopbackPair(RING_SIZE_MIN)
  fill(near, 1000)
  sendFrame(far, patterned(8, 1))
  sendControlOf(near)[HEAD_WORD] = 4
  t.equal(near.reserve(1000), BROKEN)
  const collector = new Collector()
  t.equal(near.poll(collector, 1), BROKEN, 'its own ring is broken, whatever lies in the other one')
})

t.test('hasRoom and arm that find the violation break the interface', async t => {
  for (const look of ['hasRoom', 'arm'] as const) {
    const [near] = openLoopbackPair(RING_SIZE_MIN)
    fill(near, 1000)
    sendControlOf(near)[HEAD_WORD] = 4
    t.equal(look === 'hasRoom' ? near.hasRoom(1000) : near.arm(1000), false, look)
    t.equal(near.state, 'broken', look)
    t.equal(near.failure?.code, 'ERR_NIC_PROTOCOL_VIOLATION', look)
  }
})

t.test('a broken interface can be closed, and keeps its reason', async t => {
  const [near, far] = openLoopbackPair(RING_SIZE_MIN)
  near.sendWords[FRAME_STAMP / 4] = 4
  far.poll(new Collector(), 1)
  far.close()
  t.equal(far.state, 'closed')
  t.match(far.failure, { code: 'ERR_NIC_PROTOCOL_VIOLATION' })
  t.equal(far.sendBytes.length, 0)
})

t.test('one-sided access by a broken interface is BROKEN, by a closed one CLOSED', async t => {
  const [near, far] = openLoopbackPair(RING_SIZE_MIN)
  const memory = far.register(new Uint8Array(8), { remoteRead: true, remoteWrite: true })
  near.sendWords[FRAME_STAMP / 4] = 4
  far.poll(new Collector(), 1)
  t.equal(far.rdmaRead(memory, 0, far.importKey(memory.key), 0, 8, 1), BROKEN)
  near.close()
  t.equal(near.rdmaRead(memory, 0, near.importKey(memory.key), 0, 8, 1), CLOSED)
})

t.test('a violation in one pair leaves another pair alone', async t => {
  const [broken, brokenFar] = openLoopbackPair(RING_SIZE_MIN)
  const [near, far] = openLoopbackPair(RING_SIZE_MIN)
  broken.sendWords[FRAME_STAMP / 4] = 4
  brokenFar.poll(new Collector(), 1)
  sendFrame(near, patterned(8, 1))
  t.strictSame(drain(far), [patterned(8, 1)])
})

t.test(
  'of a peer that is gone no more is taken than the ring holds, and a poll, however much it goes on writing',
  async t => {
    const [near, far] = openLoopbackPair(RING_SIZE_MIN)
    const length = 1000
    const frame = length + FRAME_HEADER_SIZE
    const before = fill(near, length).count
    far.expectEnd?.()
    let taken = 0
    for (let count = 1; count > 0; taken += count) {
      count = far.poll(new Collector(), 4)
      fill(near, length)
    }
    t.ok(taken >= before, 'all that had been written before')
    t.ok(taken * frame <= RING_SIZE_MIN + 4 * frame, `${taken} frames of ${before}`)
    t.equal(far.poll(new Collector(), 4), 0)
  },
)
