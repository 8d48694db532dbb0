import { closeSync, fstatSync, openSync } from 'node:fs'
import t from 'tap'
import { loadLibc } from '../../../nic/posix/libc.ts'
import { socketPair } from '../../../nic/posix/socket-pair.ts'
import { DESCRIPTORS_MAX, MESSAGE_MAX, receiveMessage, sendMessage } from '../../../nic/posix/unix-socket.ts'
import { collectNow } from '../../support/garbage.ts'
import { seededRandom } from '../../support/random.ts'

const ROUNDS = 50

const { libc, reason } = loadLibc()
if (libc === undefined) {
  t.plan(0, `SKIPPED: ${reason}`)
  process.exit()
}

t.test('a message of the greatest size, with the most descriptors', async t => {
  const { near, far } = socketPair('')
  const bytes = seededRandom(t).bytes(MESSAGE_MAX)
  t.equal(receiveMessage(libc, far, MESSAGE_MAX), undefined)
  const sent = Array.from({ length: DESCRIPTORS_MAX }, () => openSync('/dev/null', 'r'))
  sendMessage(libc, near, bytes, sent)
  const received = receiveMessage(libc, far, MESSAGE_MAX)
  t.strictSame(received?.bytes, bytes)
  t.equal(received?.descriptors.length, DESCRIPTORS_MAX)
  const { rdev } = fstatSync(sent[0] as number)
  for (const descriptor of received?.descriptors ?? []) t.equal(fstatSync(descriptor).rdev, rdev)
  t.throws(() => sendMessage(libc, near, Buffer.alloc(MESSAGE_MAX + 1), []), { code: 'ERR_NIC_ARGUMENT' })
  t.throws(() => sendMessage(libc, near, bytes, [...sent, near]), { code: 'ERR_NIC_ARGUMENT' })
  for (const descriptor of [...sent, ...(received?.descriptors ?? []), near, far]) closeSync(descriptor)
})

t.test('all descriptors that come are the receiver’s, however few bytes it asks for', async t => {
  const { near, far } = socketPair('')
  sendMessage(libc, near, Buffer.from('x'), [near, near, near])
  const { descriptors = [] } = receiveMessage(libc, far, 8) ?? {}
  t.equal(descriptors.length, 3, 'the kernel has closed none in our place')
  sendMessage(libc, near, Buffer.from('y'), [])
  t.strictSame(receiveMessage(libc, far, 8), { bytes: Buffer.from('y'), descriptors: [] })
  for (const descriptor of [...descriptors, near, far]) closeSync(descriptor)
})

t.test('what the kernel is pointed at stays where it is, whatever is collected meanwhile', async t => {
  const { near, far } = socketPair('')
  const kept: Uint8Array[] = []
  /** Collects unreferenced objects, and reuses their memory. */
  const churn = (): void => {
    collectNow()
    for (let i = 0; i < 500; i++) kept.push(new Uint8Array(new ArrayBuffer(16 + (i % 6) * 8)).fill(0xff))
    if (kept.length > 20_000) kept.length = 0
  }
  const churning = {
    ...libc,
    sendmsg: (fd: number, message: Uint8Array, flags: number) => {
      churn()
      return libc.sendmsg(fd, message, flags)
    },
    recvmsg: (fd: number, message: Uint8Array, flags: number) => {
      churn()
      return libc.recvmsg(fd, message, flags)
    },
  }
  const random = seededRandom(t)
  let whole = 0
  for (let round = 0; round < ROUNDS; round++) {
    const bytes = random.bytes(24)
    sendMessage(churning, near, bytes, [near])
    const received = receiveMessage(churning, far, bytes.length)
    if (received?.descriptors.length === 1 && received.bytes.equals(bytes)) whole++
    for (const descriptor of received?.descriptors ?? []) closeSync(descriptor)
  }
  t.equal(whole, ROUNDS)
  for (const descriptor of [near, far]) closeSync(descriptor)
})
