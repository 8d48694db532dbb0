import t, { type Test } from 'tap'
import {
  BROKEN,
  type DescribeFrame,
  NO_RESOURCE,
  OK,
  openLoopbackPair,
  traceDriver,
  traceInterface,
  type VirtualInterface,
} from '../../../nic/index.ts'
import { FRAME_STAMP, RING_SIZE_MIN } from '../../../nic/ring/ring-layout.ts'
import { Collector, CompletionLog, drain, fill, Handler, sendFrame } from '../../support/frames.ts'
import { until } from '../../support/until.ts'
import { driverNamed } from '../../support/wrapped-drivers.ts'

const LINE = /^ *\d+\.\d{3} ms {2}(\S+) {2}(.+)$/

interface Traced {
  readonly near: VirtualInterface
  readonly far: VirtualInterface
  /** What the lines say since they were last asked for, without their times. */
  said(): string[]
}

function openTraced(t: Test, describe?: DescribeFrame): Traced {
  const [inner, far] = openLoopbackPair(RING_SIZE_MIN)
  const lines: string[] = []
  const near = traceInterface(inner, line => lines.push(line), describe)
  t.teardown(() => {
    near.close()
    far.close()
  })
  const said = (): string[] =>
    lines.splice(0).map(line => {
      const [, label, what = ''] = LINE.exec(line) ?? []
      t.equal(label, 'loopback', line)
      return what
    })
  return { near, far, said }
}

t.test('frames: sent, received and refused, with length and first bytes', async t => {
  const { near, far, said } = openTraced(t)
  sendFrame(near, Buffer.from('0102030405060708090a', 'hex'))
  sendFrame(near, Buffer.alloc(0))
  near.reserve(8)
  near.cancel()
  t.strictSame(said(), ['-> 10 bytes  01020304 05060708 090a', '-> 0 bytes  ', '-> cancelled'])
  t.strictSame(drain(far), [Buffer.from('0102030405060708090a', 'hex'), Buffer.alloc(0)])

  sendFrame(far, Buffer.alloc(100, 0xab))
  t.strictSame(drain(near), [Buffer.alloc(100, 0xab)])
  t.strictSame(said(), [`<- 100 bytes  ${Array(8).fill('abababab').join(' ')} ...`])

  t.equal(fill(near, 1000).refusal, NO_RESOURCE)
  t.equal(said().at(-1), '-> 1000 bytes refused: NO_RESOURCE')
})

t.test('the layer above may say what a frame means', async t => {
  const { near, far, said } = openTraced(t, (bytes, offset, length) => {
    return `it says ${Buffer.from(bytes.subarray(offset, offset + length)).toString()}`
  })
  sendFrame(near, Buffer.from('hello'))
  sendFrame(far, Buffer.from('you'))
  drain(near)
  t.strictSame(said(), ['-> 5 bytes  68656c6c 6f  it says hello', '<- 3 bytes  796f75  it says you'])
})

t.test('doorbells: armed, not armed, disarmed, rung', async t => {
  const { near, far, said } = openTraced(t)
  let rings = 0
  near.setDoorbell(() => rings++)
  near.arm(0)
  near.disarm()
  near.arm(0)
  sendFrame(far, Buffer.from([1]))
  await until('the doorbell', () => rings === 1)
  near.arm(0)
  near.arm(500)
  t.strictSame(said(), [
    'doorbell armed',
    'doorbell disarmed',
    'doorbell armed',
    'doorbell rung',
    'doorbell not armed: look again',
    'doorbell not armed: look again, for 500 bytes of room',
  ])
})

t.test('registered memory, one-sided operations and their completions', async t => {
  const { near, far, said } = openTraced(t)
  const local = near.register(new Uint8Array(64), { remoteRead: false, remoteWrite: false })
  const registration = far.register(new Uint8Array(32), { remoteRead: true, remoteWrite: true })
  const remote = near.importKey(registration.key)
  near.rdmaRead(local, 8, remote, 0, 16, 1)
  near.rdmaWrite(local, 0, remote, 4, 8, 2)
  near.rdmaWrite(local, 0, remote, 0, 100, 3)
  const log = new CompletionLog()
  t.equal(near.pollCompletions(log, 10), 2)
  t.strictSame(log.completions, [
    [1, OK],
    [2, OK],
  ])
  t.strictSame(said(), [
    'registered 64 bytes, local only',
    'imported a key of 32 bytes, remote read and write',
    'rdmaRead 1: 16 bytes, 8 <- 0: OK',
    'rdmaWrite 2: 8 bytes, 0 -> 4: OK',
    'rdmaWrite 3: 100 bytes, 0 -> 0: OUT_OF_BOUNDS',
    'completed 1: OK',
    'completed 2: OK',
  ])
})

t.test('the end: closed, or broken and by what', async t => {
  const { near, far, said } = openTraced(t)
  far.sendWords[FRAME_STAMP / 4] = 4
  t.equal(near.poll(new Collector(), 1), BROKEN)
  t.equal(near.poll(new Collector(), 1), BROKEN)
  near.close()
  const lines = said()
  t.equal(lines.length, 2, 'the failure is told once')
  t.match(lines[0], /^broken: ring: frame at 0 is stamped 4/)
  t.equal(lines[1], 'closed')
})

t.test('a frame is told before its handler runs, also if the handler throws or polls', async t => {
  const { near, far, said } = openTraced(t)
  for (let i = 1; i <= 2; i++) sendFrame(far, Buffer.from([i]))
  const thrower = new Handler(() => {
    t.strictSame(said(), ['<- 1 bytes  01'])
    t.throws(() => near.poll(new Collector(), 1), /within/)
    throw new Error('from the handler')
  })
  t.throws(() => near.poll(thrower, 10), /from the handler/)
  t.strictSame(drain(near), [Buffer.from([2])])
})

t.test('a driver numbers its ends: offers even, connects odd', async t => {
  const lines: string[] = []
  const driver = traceDriver(driverNamed('loopback'), line => lines.push(line))
  t.equal(driver.name, 'trace:loopback')
  for (let i = 0; i < 2; i++) {
    const offer = driver.offer()
    const [offering, connecting] = await Promise.all([offer.accepted, driver.connect(offer.blob)])
    t.equal(offering.driver, 'trace:loopback')
    offering.close()
    connecting.close()
  }
  const labels = lines.map(line => LINE.exec(line)?.[1])
  t.strictSame(labels, ['loopback#0', 'loopback#1', 'loopback#2', 'loopback#3'])
})
