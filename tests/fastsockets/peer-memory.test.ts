/**
 * A process reads and writes the memory of another one only if both sides ask for it. The memory that the peers here
 * name is their own and untouched; mincore(2) shows whether it was read, as a read puts a page there.
 */
import { createRequire } from 'node:module'
import t from 'tap'
import { SINK_AVAIL, SRC_AVAIL } from '../../fastsockets/stream/stream-layout.ts'
import { type Driver, drivers } from '../../nic/index.ts'
import {
  MAP_ANONYMOUS,
  MAP_NORESERVE,
  MAP_PRIVATE,
  PROT_READ,
  PROT_WRITE,
} from '../../nic/posix/constants.ts'
import { requireLibc } from '../../nic/posix/libc.ts'
import { Caller } from '../support/handoff.ts'
import { SocketLiar } from '../support/socket-liar.ts'
import { until } from '../support/until.ts'

const shm = drivers.get('shm') as Driver
const availability = shm.availability()
if (!availability.usable) {
  t.plan(0, `SKIPPED: shm cannot be used here: ${availability.reason}`)
  process.exit()
}
const libc = requireLibc()
const koffi = createRequire(import.meta.url)('koffi') as typeof import('koffi')
const mincore = koffi.load(null).func('int mincore(void *addr, size_t len, void *vec)')

const LENGTH = 1 << 20
const PAGE = 4096
const READ = 1
const WRITE = 2

/** Memory that no process has touched. */
function untouched(): bigint {
  const flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE
  return BigInt(libc.mmap(null, LENGTH, PROT_READ | PROT_WRITE, flags, -1, 0))
}

function touchedPages(address: bigint): number {
  const pages = new Uint8Array(LENGTH / PAGE)
  if (mincore(address, LENGTH, pages) !== 0) throw new Error('mincore failed')
  return pages.reduce((sum, page) => sum + (page & 1), 0)
}

/** A key of process memory, as a peer that knows the layout makes it. */
function keyOf(address: bigint, access: number): Buffer {
  const key = Buffer.alloc(40)
  key.write('FSMK')
  key.writeUInt32LE(access, 4)
  key.writeBigUInt64LE(address, 8)
  key.writeBigUInt64LE(BigInt(LENGTH), 16)
  key.writeInt32LE(process.pid, 24)
  return key
}

t.test('mincore tells', async t => {
  const address = untouched()
  t.equal(touchedPages(address), 0)
  new Uint8Array(libc.view(address, LENGTH))[0] = 1
  t.equal(touchedPages(address), 1)
})

t.test('memory that a peer offers is not read: the offer is a violation', async t => {
  const offer = shm.offer()
  const liar = new SocketLiar(t, await Promise.all([shm.connect(offer.blob), offer.accepted]))
  const to = await liar.connect()
  const address = untouched()
  liar.say(SRC_AVAIL, [to, 0, 0, LENGTH], keyOf(address, READ))
  await until('the end of the channel', () => liar.isGone)
  t.equal(touchedPages(address), 0)
  t.strictSame(liar.received, [])
})

t.test('memory that a peer posts is not written: the posted receive is a violation', async t => {
  const offer = shm.offer()
  const liar = new SocketLiar(t, await Promise.all([shm.connect(offer.blob), offer.accepted]))
  const to = await liar.connect()
  const address = untouched()
  liar.say(SINK_AVAIL, [to, 0, 0, LENGTH], keyOf(address, WRITE))
  liar.stream.write([Buffer.alloc(LENGTH)])
  await until('the end of the channel', () => liar.isGone)
  t.equal(touchedPages(address), 0)
})

t.test('the handshake reads nothing of the peer', async t => {
  for (const readsPeer of [false, true]) {
    const offer = shm.offer({ readsPeer })
    const caller = new Caller(offer.blob)
    const address = untouched()
    const request = caller.request()
    // An address that earlier versions made the peer read.
    request.writeBigUInt64LE(address | 3n, 24)
    caller.say(request)
    const { descriptors } = await caller.answer()
    const end = await offer.accepted
    t.equal(touchedPages(address), 0)
    for (const descriptor of descriptors) libc.close(descriptor)
    end.close()
    caller.close()
  }
})
