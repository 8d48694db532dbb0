import t from 'tap'
import { type Driver, drivers } from '../../../nic/index.ts'
import { F_SEAL_FUTURE_WRITE, F_SEAL_GROW, F_SEAL_SHRINK } from '../../../nic/posix/constants.ts'
import { loadLibc } from '../../../nic/posix/libc.ts'
import { mapShared, unmapShared } from '../../../nic/posix/mapping.ts'
import { patterned, sendFrame } from '../../support/frames.ts'
import { openMemfd } from '../../support/handoff.ts'
import { memfdMappingCount } from '../../support/resources.ts'

const LENGTH = 64 * 1024
const { libc, reason } = loadLibc()
if (libc === undefined) {
  t.plan(0, `SKIPPED: ${reason}`)
  process.exit()
}

t.test('two mappings of one descriptor are the same memory', async t => {
  const fd = openMemfd(LENGTH)
  const first = mapShared(libc, fd, LENGTH)
  const second = mapShared(libc, fd, LENGTH)
  libc.close(fd)
  t.equal(first.memory.byteLength, LENGTH)
  new Int32Array(first.memory)[100] = 42
  t.equal(Atomics.load(new Int32Array(second.memory), 100), 42)
  unmapShared(libc, first)
  unmapShared(libc, second)
  t.equal(memfdMappingCount(), 0)
})

t.test('a view that outlives its mapping reads zeros, may be written, and kills no process', async t => {
  const fd = openMemfd(LENGTH)
  const mapping = mapShared(libc, fd, LENGTH)
  const view = new Uint8Array(mapping.memory).fill(7)
  unmapShared(libc, mapping)
  t.equal(view[100], 0)
  view[100] = 1
  const again = mapShared(libc, fd, LENGTH)
  t.equal(new Uint8Array(again.memory)[100], 7, 'what was written in between did not reach the segment')
  unmapShared(libc, again)
  libc.close(fd)
})

t.test('a range that was given back is used again for the next mapping of its size', async t => {
  const fd = openMemfd(LENGTH)
  const mapping = mapShared(libc, fd, LENGTH)
  unmapShared(libc, mapping)
  const addresses = new Set([mapping.address])
  for (let i = 0; i < 100; i++) {
    const next = mapShared(libc, fd, LENGTH)
    addresses.add(next.address)
    unmapShared(libc, next)
  }
  t.equal(addresses.size, 1)
  libc.close(fd)
})

t.test('unmapped twice is unmapped once: what has the range by then keeps it', async t => {
  const fd = openMemfd(LENGTH)
  const first = mapShared(libc, fd, LENGTH)
  unmapShared(libc, first)
  unmapShared(libc, first)
  const second = mapShared(libc, fd, LENGTH)
  const third = mapShared(libc, fd, LENGTH)
  t.not(second.address, third.address, 'two mappings, two ranges')
  unmapShared(libc, second)
  unmapShared(libc, third)
  libc.close(fd)
})

t.test(
  'what cannot be mapped is an error with its syscall, and leaves no hole for others to fall into',
  async t => {
    const fd = openMemfd(LENGTH)
    const readOnly = openMemfd(LENGTH, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE)
    for (const refused of [-1, readOnly]) {
      const mapping = mapShared(libc, fd, LENGTH)
      const view = new Uint8Array(mapping.memory)
      unmapShared(libc, mapping)
      t.throws(() => mapShared(libc, refused, LENGTH), { code: 'ERR_NIC_SYSTEM', syscall: 'mmap' })
      t.equal(view[0], 0, 'an earlier view kills no process')
      unmapShared(libc, mapShared(libc, fd, LENGTH))
    }
    libc.close(readOnly)
    libc.close(fd)
  },
)

t.test('a queue whose view outlives its close kills no process either', async t => {
  const shm = drivers.get('shm') as Driver
  const offer = shm.offer()
  const [near, far] = await Promise.all([shm.connect(offer.blob), offer.accepted])
  sendFrame(near, patterned(1000, 1))
  const { sendBytes, sendWords } = near
  near.close()
  far.close()
  t.equal(sendBytes[8], 0)
  t.equal(sendWords[2], 0)
  sendBytes.fill(1)
  t.equal(memfdMappingCount(), 0)
})
