/** Segments of a peer: only memory that fits its key is mapped, whatever descriptor comes with it, and no peer can block this process. */
import { closeSync, openSync } from 'node:fs'
import net from 'node:net'
import { constants, release } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { type Driver, drivers, OK, OUT_OF_BOUNDS } from '../../../nic/index.ts'
import {
  F_SEAL_FUTURE_WRITE,
  F_SEAL_GROW,
  F_SEAL_SHRINK,
  F_SEAL_WRITE,
  SOL_SOCKET,
} from '../../../nic/posix/constants.ts'
import { requireLibc } from '../../../nic/posix/libc.ts'
import { socketPair } from '../../../nic/posix/socket-pair.ts'
import {
  connectAbstract,
  DESCRIPTORS_MAX,
  refuseDescriptors,
  sendMessage,
} from '../../../nic/posix/unix-socket.ts'
import { encodeKey, encodeSegment, KEY_READ, KEY_WRITE } from '../../../nic/shm/handoff-layout.ts'
import { SEGMENTS_PER_PEER_MAX, SegmentExchange, strangeUsers } from '../../../nic/shm/segment-exchange.ts'
import { STRANGE_MAX, StrangeUsers } from '../../../nic/shm/strange-users.ts'
import { collectGarbage } from '../../support/garbage.ts'
import { openMemfd } from '../../support/handoff.ts'
import { descriptorCount, memfdMappingCount } from '../../support/resources.ts'
import { skipHere } from '../../support/skip.ts'
import { until } from '../../support/until.ts'

const shm = drivers.get('shm') as Driver
const availability = shm.availability()
if (!availability.usable) {
  t.plan(0, `SKIPPED: shm cannot be used here: ${availability.reason}`)
  process.exit()
}
const libc = requireLibc()

const LENGTH = 8192
const SIZED = F_SEAL_SHRINK | F_SEAL_GROW
const READ_ONLY = SIZED | F_SEAL_FUTURE_WRITE
const VIOLATION = { code: 'ERR_NIC_PROTOCOL_VIOLATION' }
const ARGUMENT = { code: 'ERR_NIC_ARGUMENT' }
const SO_LINGER = 13
const SO_PASSCRED = 16
const SO_PASSSEC = 34
const SO_PASSPIDFD = 76
const ON = Buffer.of(1, 0, 0, 0)
const LINGER_S = 30
/** Far from the linger time, and more than a busy machine takes. */
const PROMPT_MS = 10_000
/** Users of the tests' own making, so that one test does not have the next one's peers refused. */
let nextUid = 4_000_000

/** Our end of the connection for descriptors, and a peer that passes and says what it likes. */
class Passer {
  readonly uid = nextUid++
  readonly exchange: SegmentExchange
  readonly #far: number

  /** `options`: of our end, which the peer has made and may have kept, so it says what comes with each message. */
  constructor(t: Test, options: readonly number[] = []) {
    const { near, far } = socketPair()
    this.#far = far
    for (const option of options) libc.setsockopt(near, SOL_SOCKET, option, ON, ON.length)
    this.exchange = new SegmentExchange(libc, near, this.uid)
    t.teardown(() => {
      this.exchange.close()
      libc.close(far)
    })
  }

  /** Passes descriptors and closes its own copies. */
  pass(descriptors: readonly number[], index = 0): void {
    this.say(encodeSegment(index), descriptors)
  }

  say(bytes: Uint8Array, descriptors: readonly number[]): void {
    sendMessage(libc, this.#far, bytes, descriptors)
    for (const descriptor of descriptors) libc.close(descriptor)
  }
}

function keyOf({ length = LENGTH, access = KEY_READ | KEY_WRITE, index = 0 } = {}): Buffer {
  return encodeKey(access, length, index)
}

/** A TCP socket whose last descriptor takes `LINGER_S` to close: its peer does not read. */
async function lingeringSocket(t: Test): Promise<number> {
  const server = net.createServer({ pauseOnConnect: true }, socket => t.teardown(() => socket.destroy()))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const { port } = server.address() as net.AddressInfo
  const socket = net.connect(port, '127.0.0.1')
  await new Promise(resolve => socket.once('connect', resolve))
  const own = (socket as unknown as { _handle: { fd: number } })._handle.fd
  const fd = libc.fcntl(own, 1030, 0)
  const bytes = Buffer.alloc(1 << 20)
  await until('a full connection', () => {
    const sent = libc.send(fd, bytes, bytes.length, 0x40)
    return sent < 0
  })
  const linger = Buffer.alloc(8)
  linger.writeInt32LE(1, 0)
  linger.writeInt32LE(LINGER_S, 4)
  t.equal(libc.setsockopt(fd, SOL_SOCKET, SO_LINGER, linger, linger.length), 0)
  // The descriptor of Node's own goes first, and is not the last.
  await new Promise<void>(resolve => socket.destroy().once('close', () => resolve()))
  return fd
}

t.test('what a key says is mapped, with the rights of the key', async t => {
  const passer = new Passer(t)
  const fd = openMemfd(LENGTH)
  passer.pass([fd])
  const segment = passer.exchange.import(keyOf())
  t.equal(segment.length, LENGTH)
  t.strictSame(segment.access, { remoteRead: true, remoteWrite: true })
  segment.bytes[LENGTH - 1] = 7
  t.equal(passer.exchange.import(keyOf()), segment, 'the same key is the same segment')
  t.equal(memfdMappingCount(), 1)
  passer.exchange.close()
  t.equal(memfdMappingCount(), 0)
  t.equal(segment.bytes.length, 0, 'no view of it is left')
})

t.test('a segment that is read only is mapped for reading', async t => {
  const passer = new Passer(t)
  passer.pass([openMemfd(LENGTH, READ_ONLY)])
  const segment = passer.exchange.import(keyOf({ access: KEY_READ }))
  t.strictSame(segment.access, { remoteRead: true, remoteWrite: false })
  t.equal(segment.bytes[0], 0)
})

t.test('descriptors that are not what their key says', async t => {
  const file = (): number => {
    const directory = t.testdir({ segment: Buffer.alloc(LENGTH) })
    return openSync(join(directory, 'segment'), 'r+')
  }
  const readOnly = (): number => {
    const fd = openMemfd(LENGTH)
    const reopened = openSync(`/proc/self/fd/${fd}`, 'r')
    closeSync(fd)
    return reopened
  }
  const memory: [what: string, make: () => number, key: Buffer][] = [
    ['unsealed memory', () => openMemfd(LENGTH, 0), keyOf()],
    ['memory that may shrink', () => openMemfd(LENGTH, F_SEAL_GROW), keyOf()],
    ['memory that may grow', () => openMemfd(LENGTH, F_SEAL_SHRINK), keyOf()],
    ['memory that is shorter', () => openMemfd(LENGTH - 4096), keyOf()],
    ['memory that is longer', () => openMemfd(LENGTH + 1), keyOf()],
    ['no memory at all', () => openMemfd(0), keyOf()],
    ['memory that is sealed against writing', () => openMemfd(LENGTH, SIZED | F_SEAL_WRITE), keyOf()],
    ['memory that others may not write', () => openMemfd(LENGTH, READ_ONLY), keyOf()],
    ['a descriptor that may not write', readOnly, keyOf()],
    [
      'memory that may be written, said to be read only',
      () => openMemfd(LENGTH),
      keyOf({ access: KEY_READ }),
    ],
  ]
  for (const [what, make, key] of memory) {
    await t.test(`${what} is a violation, and is closed`, async t => {
      const passer = new Passer(t)
      const before = descriptorCount()
      passer.pass([make()])
      t.throws(() => passer.exchange.import(key), VIOLATION)
      t.equal(descriptorCount(), before)
      t.equal(memfdMappingCount(), 0)
    })
  }
  const others: [what: string, make: () => number][] = [
    ['an ordinary file', file],
    ['a device', () => openSync('/dev/zero', 'r+')],
    ['a folder', () => openSync('/tmp', 'r')],
    ['a unix connection', () => socketPair().near],
  ]
  for (const [what, make] of others) {
    await t.test(`${what} is a violation, and is not closed: that may wait for the peer`, async t => {
      const passer = new Passer(t)
      const descriptor = make()
      const before = descriptorCount()
      passer.pass([descriptor])
      t.throws(() => passer.exchange.import(keyOf()), VIOLATION)
      t.equal(descriptorCount(), before)
      t.equal(memfdMappingCount(), 0)
    })
  }
})

t.test('a socket that takes its time to close keeps no caller waiting', async t => {
  const startMs = performance.now()
  for (const say of ['with its key', 'with another message', 'among others', 'and is never asked for']) {
    const fd = await lingeringSocket(t)
    await t.test(say, async t => {
      const passer = new Passer(t)
      if (say === 'with another message') passer.say(Buffer.from('what?'), [fd])
      else passer.pass(say === 'among others' ? [openMemfd(LENGTH), fd] : [fd])
      if (say !== 'and is never asked for') t.throws(() => passer.exchange.import(keyOf()), VIOLATION)
      passer.exchange.close()
    })
  }
  t.ok(performance.now() - startMs < PROMPT_MS, `${performance.now() - startMs} ms`)
})

t.test('with other control messages of the kernel the descriptors are found and closed', async t => {
  const before = descriptorCount()
  const told = new Passer(t, [SO_PASSCRED, SO_PASSSEC])
  told.pass([openMemfd(LENGTH)])
  t.equal(told.exchange.import(keyOf()).length, LENGTH)
  const named = new Passer(t, [SO_PASSCRED, SO_PASSSEC, SO_PASSPIDFD])
  for (let round = 0; round < 3; round++) {
    named.pass(Array.from({ length: DESCRIPTORS_MAX }, () => openMemfd(LENGTH)))
  }
  told.exchange.close()
  named.exchange.close()
  const PEERS_ENDS = 2
  t.equal(descriptorCount(), before + PEERS_ENDS)
})

t.test('a segment that is larger than any view is not mapped', async t => {
  for (const length of [8 * 1024 ** 3, 2 ** 45]) {
    const passer = new Passer(t)
    const before = memfdMappingCount()
    passer.pass([openMemfd(length)])
    t.throws(() => passer.exchange.import(keyOf({ length })), { code: 'ERR_NIC_UNAVAILABLE' })
    t.equal(memfdMappingCount(), before, 'no address range is taken')
  }
})

t.test('a user who passes what is no memory gets no connections for a while', async t => {
  const passer = new Passer(t)
  strangeUsers.assertPassesMemory(passer.uid)
  passer.pass(Array.from({ length: 20 }, () => openSync('/dev/null', 'r')))
  t.throws(() => passer.exchange.import(keyOf()), VIOLATION)
  t.throws(() => strangeUsers.assertPassesMemory(passer.uid), { code: 'ERR_NIC_PEER_REFUSED' })
  strangeUsers.assertPassesMemory(nextUid)
})

t.test('the refusal ends, and each lasts twice as long as the one before', async t => {
  let nowMs = 0
  const users = new StrangeUsers(() => nowMs)
  const refusedMs = (): number => {
    for (let i = 1; i < STRANGE_MAX; i++) users.note(1)
    users.assertPassesMemory(1)
    // Those of older connections count once.
    for (let i = 0; i < 100; i++) users.note(1)
    t.throws(() => users.assertPassesMemory(1), { code: 'ERR_NIC_PEER_REFUSED' })
    users.assertPassesMemory(2)
    const begunMs = nowMs
    for (let isRefused = true; isRefused; nowMs += isRefused ? 1000 : 0) {
      try {
        users.assertPassesMemory(1)
        isRefused = false
      } catch {}
    }
    return nowMs - begunMs
  }
  t.strictSame(
    Array.from({ length: 8 }, refusedMs),
    [1, 2, 4, 8, 16, 32, 60, 60].map(minutes => minutes * 60_000),
  )
})

t.test('what is left in a connection that passed what is no memory costs no descriptors', async t => {
  const passer = new Passer(t)
  for (let i = 0; i < 20; i++)
    passer.pass(
      Array.from({ length: 100 }, () => openSync('/dev/null', 'r')),
      i,
    )
  const before = descriptorCount()
  passer.exchange.close()
  t.ok(descriptorCount() - before <= 100, `${descriptorCount() - before} descriptors more`)
})

t.test('messages and keys that do not fit', async t => {
  const cases: [what: string, error: { code: string }, act: (passer: Passer) => void][] = [
    ['a key without a descriptor', VIOLATION, () => {}],
    ['a message without a descriptor', VIOLATION, passer => passer.say(encodeSegment(0), [])],
    ['two descriptors', VIOLATION, passer => passer.pass([openMemfd(LENGTH), openMemfd(LENGTH)])],
    ['another index', VIOLATION, passer => passer.pass([openMemfd(LENGTH)], 1)],
    [
      'a message cut short',
      VIOLATION,
      passer => passer.say(encodeSegment(0).subarray(1), [openMemfd(LENGTH)]),
    ],
  ]
  for (const [what, error, act] of cases) {
    await t.test(what, async t => {
      const passer = new Passer(t)
      const before = descriptorCount()
      act(passer)
      t.throws(() => passer.exchange.import(keyOf()), error)
      t.equal(descriptorCount(), before)
    })
  }
  const keys: [what: string, key: Buffer, error: { code: string }][] = [
    ['of nothing', keyOf({ length: 0 }), ARGUMENT],
    ['of more than can be counted', keyOf({ length: 2 ** 60 }), ARGUMENT],
    ['without rights', keyOf({ access: 0 }), ARGUMENT],
    ['to be written only', keyOf({ access: KEY_WRITE }), ARGUMENT],
    ['with unknown rights', keyOf({ access: 7 }), ARGUMENT],
    ['of a later segment', keyOf({ index: 1 }), { code: 'ERR_NIC_UNAVAILABLE' }],
    ['of the last index', keyOf({ index: 0xffff_ffff }), { code: 'ERR_NIC_UNAVAILABLE' }],
  ]
  for (const [what, key, error] of keys) {
    await t.test(`a key ${what}`, async t => {
      const passer = new Passer(t)
      passer.pass([openMemfd(LENGTH)])
      t.throws(() => passer.exchange.import(key), error)
    })
  }
  await t.test('a key that says something else than before', async t => {
    const passer = new Passer(t)
    passer.pass([openMemfd(LENGTH)])
    passer.exchange.import(keyOf())
    t.throws(() => passer.exchange.import(keyOf({ length: LENGTH * 2 })), ARGUMENT)
    t.throws(() => passer.exchange.import(keyOf({ access: KEY_READ })), ARGUMENT)
  })
})

t.test('so many segments of a peer are mapped, and no more', async t => {
  const passer = new Passer(t)
  for (let index = 0; index < SEGMENTS_PER_PEER_MAX; index++) {
    passer.pass([openMemfd(4096)], index)
    passer.exchange.import(keyOf({ length: 4096, index }))
  }
  t.equal(memfdMappingCount(), SEGMENTS_PER_PEER_MAX)
  passer.pass([openMemfd(4096)], SEGMENTS_PER_PEER_MAX)
  const more = keyOf({ length: 4096, index: SEGMENTS_PER_PEER_MAX })
  t.throws(() => passer.exchange.import(more), { code: 'ERR_NIC_UNAVAILABLE' })
  passer.exchange.close()
  t.equal(memfdMappingCount(), 0)
})

t.test('memory that was allocated stays the program’s for as long as anything refers to it', async t => {
  const before = memfdMappingCount()
  const held: { view?: Uint8Array } = {}
  const allocate = (): void => {
    held.view = (shm.allocate?.(100_000, true) as Uint8Array).subarray(10, 20).fill(9)
  }
  allocate()
  await collectGarbage()
  t.equal(memfdMappingCount(), before + 1)
  t.ok(held.view?.every(byte => byte === 9))
  const descriptors = descriptorCount()
  delete held.view
  await until('its end', async () => {
    await collectGarbage()
    return memfdMappingCount() === before
  })
  t.equal(descriptorCount(), descriptors - 1)
  const again = shm.allocate?.(100_000, true) as Uint8Array
  t.ok(
    again.every(byte => byte === 0),
    'the next owner of the addresses reads zeros',
  )
})

t.test(
  'nothing outside of a segment is reached, and a segment whose owner is gone stays readable',
  async t => {
    const offer = shm.offer({ sharesMemory: true })
    const [near, far] = await Promise.all([shm.connect(offer.blob, { sharesMemory: true }), offer.accepted])
    const memory = shm.allocate?.(1000, true) as Uint8Array
    const remote = near.importKey(far.register(memory, { remoteRead: true, remoteWrite: true }).key)
    const local = near.register(new Uint8Array(5000).fill(3), { remoteRead: false, remoteWrite: false })
    t.equal(near.rdmaWrite(local, 0, remote, 0, 1001, 1), OUT_OF_BOUNDS)
    t.equal(near.rdmaWrite(local, 0, remote, 999, 2, 1), OUT_OF_BOUNDS)
    t.equal(near.rdmaWrite(local, 0, remote, 0, 1000, 1), OK)
    t.ok(memory.every(byte => byte === 3))
    const part = memory.subarray(1)
    const access = { remoteRead: true, remoteWrite: true }
    t.throws(
      () => far.register(part, access),
      { code: 'ERR_NIC_UNAVAILABLE' },
      'a mapping has the whole memory',
    )
    near.close()
    far.close()
  },
)

t.test('a listener that refuses descriptors does so for each connection, from its first byte on', async t => {
  const name = `segments-test-${process.pid}`.padEnd(107, '-')
  const server = net.createServer(socket => t.teardown(() => socket.destroy()))
  server.listen({ path: `\0${name}` })
  t.teardown(() => server.close())
  refuseDescriptors(server)
  const caller = connectAbstract(libc, name) as number
  const own = socketPair()
  t.teardown(() => {
    for (const fd of [caller, own.near, own.far]) libc.close(fd)
  })
  try {
    sendMessage(libc, caller, Buffer.of(1), [own.near])
  } catch (error) {
    t.match(error, { code: 'ERR_NIC_SYSTEM', errno: constants.errno.EPERM })
    sendMessage(libc, caller, Buffer.of(1), [])
    return
  }
  skipHere(t, `Linux ${release()} cannot refuse descriptors (6.16 can)`)
})
