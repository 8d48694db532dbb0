/** Everything that can be wrong with a device, provoked: each has a name, and a text that says what to do. */
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { constants } from 'node:os'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import t from 'tap'
import { NicError } from '../../../nic/errors.ts'
import { deviceAddress } from '../../../nic/index.ts'
import { BROKEN, OK } from '../../../nic/status.ts'
import { chooseDevice } from '../../../nic/verbs/device-choice.ts'
import { RING_SIZE_MIN } from '../../../nic/verbs/frame-layout.ts'
import {
  ASYNC_DEVICE_FATAL,
  ASYNC_GID_CHANGE,
  ASYNC_PORT,
  ASYNC_PORT_ERROR,
  ASYNC_QUEUE_ERROR,
  ASYNC_SHARED_QUEUE_ERROR,
  ASYNC_TYPE,
  CQ_CHANNEL,
  WC_FLUSHED,
  WC_RETRY_EXCEEDED,
  WC_RNR_RETRY_EXCEEDED,
} from '../../../nic/verbs/library-layout.ts'
import { requireAdapter } from '../../../nic/verbs/open-adapter.ts'
import { QueuePair } from '../../../nic/verbs/queue-pair.ts'
import { RECEIVES_AT_ONCE } from '../../../nic/verbs/receive-chain.ts'
import { RegistrationCache } from '../../../nic/verbs/registration-cache.ts'
import { VerbsAdapter } from '../../../nic/verbs/verbs-adapter.ts'
import { VerbsInterface } from '../../../nic/verbs/verbs-interface.ts'
import { loadVerbs, type VerbsLibrary } from '../../../nic/verbs/verbs-library.ts'
import { WORK_SEND } from '../../../nic/verbs/work-identity.ts'
import { Handler, sendFrame } from '../../support/frames.ts'
import { until } from '../../support/until.ts'
import { connectEnds } from '../connected-ends.ts'
import { addDevice, report, run } from '../device-reports.ts'
import type { PinnedReport } from '../programs/pinned-report.ts'

const PINNED = fileURLToPath(new URL('../programs/pinned-report.js', import.meta.url))
/** Bytes; a process that is held to it. */
const PINNABLE = 2 * 1024 * 1024
/** IBV_WC_REM_ACCESS_ERR. */
const REMOTE_ACCESS_ERROR = 10
const OTHER_ADDRESS = '10.77.0.3'
const NOBODY = 'setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs'

await t.test('what is missing has a name', { jobs: 2 }, async t => {
  const folder = '/usr/lib/x86_64-linux-gnu'
  const number = '$(tr : " " < /sys/class/infiniband_verbs/uverbs0/dev)'
  const cases: [string, string, RegExp, string, NodeJS.ProcessEnv?][] = [
    [
      'the library',
      'VERBS_LIBRARY',
      /install rdma-core/,
      `mount --bind /dev/null ${folder}/libibverbs.so.1; exec`,
    ],
    [
      'the provider',
      'VERBS_PROVIDER',
      /rxe0: install ibverbs-providers/,
      'mount -t tmpfs t /etc/libibverbs.d; exec',
    ],
    [
      'the permission',
      'VERBS_PERMISSION',
      /uverbs0 EACCES/,
      `mount -t tmpfs t /dev/infiniband; mknod -m 600 /dev/infiniband/uverbs0 c ${number}; exec ${NOBODY}`,
    ],
    ['a page that may be pinned', 'VERBS_MEMLOCK', /RLIMIT_MEMLOCK/, `ulimit -l 0; exec ${NOBODY}`],
    ['the device', 'VERBS_NO_DEVICE', /no RDMA device rxe9/, 'exec', { FASTSOCKETS_VERBS_DEVICE: 'rxe9' }],
    ['the port', 'VERBS_PORT_DOWN', /no port 7/, 'exec', { FASTSOCKETS_VERBS_PORT: '7' }],
    ['an address', 'VERBS_NO_GID', /no address/, 'exec', { FASTSOCKETS_VERBS_GID_INDEX: '200' }],
  ]
  for (const [what, code, reason, preparation, env] of cases) {
    t.test(what, async t =>
      t.match((await report(preparation, env)).availability, { usable: false, code, reason }),
    )
  }
})

await t.test('what a library or a kernel says that cannot be used has a name, too', async t => {
  const real = verbsLibrary()
  const refusal = (changes: Partial<VerbsLibrary>): unknown => chooseDevice({ ...real, ...changes })
  t.match(refusal({ ibv_is_fork_initialized: () => 0 }), { code: 'VERBS_FORK', reason: /5\.12/ })
  t.match(refusal({ ibv_open_device: () => null }), {
    code: 'VERBS_DEVICE',
    reason: /^rxe0 cannot be opened/,
  })
  t.match(refusal({ ibv_get_device_list: () => null }), { code: 'VERBS_NO_DEVICE' })
  const lying = (_context: unknown, _port: number, attributes: Uint8Array): number => {
    attributes.fill(0xff)
    return 0
  }
  t.match(refusal({ ibv_query_port: lying }), { code: 'VERBS_ABI', reason: /not known here/ })
  const index = new URL('../../../nic/index.js', import.meta.url).href
  const script = `import(${JSON.stringify(index)}).then(({ drivers }) =>
    require('node:worker_threads').parentPort.postMessage(drivers.get('verbs').availability()))`
  const [availability] = await once(new Worker(script, { eval: true }), 'message')
  t.match(availability, { usable: false, code: 'VERBS_THREAD' })
})

await t.test('what the device says of a request that failed has a code', async t => {
  const adapter = requireAdapter()
  const ends: [status: number, code: string, message: RegExp][] = [
    [WC_RETRY_EXCEEDED, 'ERR_NIC_PEER_LOST', /does not acknowledge/],
    [WC_RNR_RETRY_EXCEEDED, 'ERR_NIC_PEER_LOST', /takes nothing/],
    [WC_FLUSHED, 'ERR_NIC_PEER_LOST', /does not acknowledge/],
    [REMOTE_ACCESS_ERROR, 'ERR_NIC_PROTOCOL_VIOLATION', /completion status 10/],
  ]
  for (const [status, code, message] of ends) {
    const end = new VerbsInterface(adapter, adapter.cache, 64 * 1024)
    end.handleCompletion(WORK_SEND, 0, status, 0)
    t.match(end, { state: 'broken', failure: { code, message } })
    t.equal(sendFrame(end, Buffer.alloc(8)), BROKEN)
    end.close()
  }
})

await t.test('a port that goes down ends the connections over it', async t => {
  addDevice('rxe1', 'link1')
  const choice = { FASTSOCKETS_VERBS_DEVICE: 'rxe1' }
  const { end, availability } = await report('exec', choice, 'ip link set link1 down')
  t.match(end, { state: 'broken', code: 'ERR_NIC_UNAVAILABLE', message: /port 1 of rxe1 has gone down/ })
  t.equal(end?.status, BROKEN)
  t.match(availability, { usable: false, code: 'VERBS_LOST' })
  const later = await report('exec', choice)
  t.match(later.availability, { usable: false, code: 'VERBS_PORT_DOWN', reason: /port 1 of rxe1 is down/ })
})

/** The result of ibv_get_async_event: a type, the object, and whether the port has another address by then. */
interface Event {
  readonly type: number
  readonly port?: number
  readonly isMoved?: boolean
}

/** An adapter of the real device that hears of `event` when `tell` is called: the library's word is put in its mouth. */
function adapterThatHears({ type, port = 0, isMoved = false }: Event): {
  adapter: VerbsAdapter
  tell: () => void
} {
  const real = verbsLibrary()
  const chosen = chooseDevice(real)
  if (!('context' in chosen)) throw new Error(chosen.reason)
  const listeners: (() => void)[] = []
  let events = 1
  const library: VerbsLibrary = {
    ...real,
    watch: (fd, listener) => {
      listeners.push(listener)
      return real.watch(fd, listener)
    },
    ibv_get_async_event: (_context, event) => {
      if (events-- === 0) return -1
      const view = new DataView(event.buffer, event.byteOffset)
      view.setInt32(ASYNC_PORT, port, true)
      view.setInt32(ASYNC_TYPE, type, true)
      return 0
    },
    ibv_ack_async_event: () => {},
    ibv_query_gid: (context, number, index, gid) => {
      const errno = real.ibv_query_gid(context, number, index, gid)
      if (isMoved) gid[15] = (gid[15] as number) ^ 0xff
      return errno
    },
  }
  return {
    adapter: new VerbsAdapter(library, chosen.context, chosen.port),
    tell: () => {
      for (const listener of listeners) listener()
    },
  }
}

// The software device never fails.
await t.test('a device that fails ends the connections over it', async t => {
  const fatal: [event: Event, message: RegExp][] = [
    [{ type: ASYNC_DEVICE_FATAL }, /has failed or was removed/],
    [{ type: ASYNC_QUEUE_ERROR }, /the completion queue of rxe0 has failed/],
    [{ type: ASYNC_SHARED_QUEUE_ERROR }, /the queue of receives of rxe0 has failed/],
    [{ type: ASYNC_PORT_ERROR, port: 1 }, /port 1 of rxe0 has gone down/],
  ]
  for (const [event, message] of fatal) {
    const { adapter, tell } = adapterThatHears(event)
    const end = new VerbsInterface(adapter, new RegistrationCache(adapter), 64 * 1024)
    tell()
    t.match(end, { state: 'broken', failure: { code: 'ERR_NIC_UNAVAILABLE', message } })
    t.throws(() => new VerbsInterface(adapter, new RegistrationCache(adapter), 64 * 1024), {
      code: 'ERR_NIC_UNAVAILABLE',
    })
    t.notOk(adapter.isClosed, 'the device is in use')
    end.close()
    await until('the end of its use', () => adapter.isClosed)
  }
})

await t.test('what happens to another port, or to another address, is nothing to us', async t => {
  const harmless: Event[] = [
    { type: ASYNC_PORT_ERROR, port: 2 },
    { type: ASYNC_GID_CHANGE, port: 1 },
    { type: ASYNC_GID_CHANGE, port: 2, isMoved: true },
  ]
  for (const event of harmless) {
    const { adapter, tell } = adapterThatHears(event)
    const [near, far] = await connectEnds(adapter, new RegistrationCache(adapter))
    tell()
    t.notOk(adapter.isOutdated, JSON.stringify(event))
    sendFrame(near, Buffer.from('still here'))
    await until('the frame', () => far.poll(new Handler(() => {}), 1) === 1)
    t.equal(near.state, 'open')
    near.close()
    far.close()
    adapter.abandon('the test is over')
    await until('the end of its use', () => adapter.isClosed)
  }
})

await t.test(
  'where our address is another one, connections go on, and the adapter goes with the last',
  async t => {
    const { adapter, tell } = adapterThatHears({ type: ASYNC_GID_CHANGE, port: 1, isMoved: true })
    const [near, far] = await connectEnds(adapter, new RegistrationCache(adapter))
    tell()
    t.ok(adapter.isOutdated)
    sendFrame(near, Buffer.from('still here'))
    await until('the frame', () => far.poll(new Handler(() => {}), 1) === 1)
    t.notOk(adapter.isClosed, 'the device is in use')
    near.close()
    far.close()
    await until('the end of its use', () => adapter.isClosed)
    t.throws(() => new VerbsInterface(adapter, new RegistrationCache(adapter), 64 * 1024), {
      code: 'ERR_NIC_UNAVAILABLE',
      message: /another address/,
    })
  },
)

await t.test('receives that the device refuses break the connection', async t => {
  const real = verbsLibrary()
  const chosen = chooseDevice(real)
  if (!('context' in chosen)) throw new Error(chosen.reason)
  let isFull = false
  const refusing: VerbsLibrary = {
    ...real,
    deviceFunctions: (...at) => {
      const functions = real.deviceFunctions(...at)
      return {
        ...functions,
        postReceive: (qp, request, bad) =>
          isFull ? constants.errno.ENOMEM : functions.postReceive(qp, request, bad),
      }
    },
  }
  const adapter = new VerbsAdapter(refusing, chosen.context, chosen.port)
  const cache = new RegistrationCache(adapter)
  const refusal = { code: 'ERR_NIC_SYSTEM', syscall: 'ibv_post_recv', message: /ibv_post_recv ENOMEM/ }
  const [near, far] = await connectEnds(adapter, cache)
  isFull = true
  t.throws(() => new VerbsInterface(adapter, cache, 64 * 1024), refusal)
  let taken = 0
  const sink = new Handler(() => {
    taken++
  })
  // One receive went to the word that connects; what came with the others is handed out all the same.
  const count = RECEIVES_AT_ONCE - 1
  for (let i = 0; i < count; i++) t.equal(sendFrame(near, Buffer.alloc(8)), OK)
  await until('the end', () => far.poll(sink, count) < 0)
  t.equal(taken, count)
  t.match(far, { state: 'broken', failure: refusal })
  t.equal(sendFrame(far, Buffer.alloc(8)), BROKEN)
  near.close()
  far.close()
  adapter.abandon('the test is over')
  await until('nothing stays behind', () => adapter.isClosed)
})

await t.test('under a low limit the cache gives up what it keeps before a connection is refused', async t => {
  const preparation = `ulimit -l ${PINNABLE / 1024}; exec ${NOBODY}`
  const found = await run<PinnedReport>(preparation, [PINNED, `${PINNABLE}`])
  t.comment(JSON.stringify(found))
  t.equal(found.ringSize, RING_SIZE_MIN, 'small rings by themselves')
  t.ok(found.cached > PINNABLE / 4 && found.cached <= PINNABLE / 2, 'the cache takes no more than half')
  t.ok(found.cached + found.ringBytes > PINNABLE, 'there would not be room for both')
  t.equal(found.cachedAfter, 0)
  t.equal(found.arrived, 'hello')
  t.match(found.refusal, /RLIMIT_MEMLOCK/, 'where nothing can be given up it is an error')
})

await t.test(
  'a device that is removed while it is in use ends the connections, and is given back',
  async t => {
    addDevice('rxe2', 'link2')
    const { end, commandEnded, availability } = await report(
      'exec',
      { FASTSOCKETS_VERBS_DEVICE: 'rxe2' },
      'rdma link delete rxe2',
    )
    t.match(end, { state: 'broken', code: 'ERR_NIC_UNAVAILABLE', message: /^rxe2 was removed/ })
    t.equal(end?.status, BROKEN)
    t.ok(commandEnded, 'the command that removes it need not wait for the end of the process')
    t.match(availability, { usable: false, code: 'VERBS_LOST', reason: /^rxe2 was removed/ })
  },
)

await t.test('structures that lie elsewhere are refused', async t => {
  const real = verbsLibrary()
  const moved: VerbsLibrary = {
    ...real,
    readPointer: (at, offset) => real.readPointer(at, offset + 8),
    readUint32: (at, offset) => real.readUint32(at, offset + 4),
  }
  const chosen = chooseDevice(real)
  if (!('context' in chosen)) throw new Error(chosen.reason)
  const refusal = (structure: string): Error =>
    new NicError(
      'ERR_NIC_UNAVAILABLE',
      `libibverbs keeps struct ${structure} in another way than is known here`,
    )
  t.throws(() => new VerbsAdapter(moved, chosen.context, chosen.port), refusal('ibv_context'))
  const withoutChannel: VerbsLibrary = {
    ...real,
    readPointer: (at, offset) => (offset === CQ_CHANNEL ? 0n : real.readPointer(at, offset)),
  }
  const descriptors = (): number => readdirSync('/proc/self/fd').length
  const before = descriptors()
  t.throws(() => new VerbsAdapter(withoutChannel, chosen.context, chosen.port), refusal('ibv_cq'))
  t.equal(descriptors(), before, 'what was made before it is given back')
  const adapter = requireAdapter()
  const misled = Object.create(adapter, { verbs: { value: moved } }) as VerbsAdapter
  const page = new Uint8Array(new ArrayBuffer(4096))
  t.throws(() => misled.register(real.libc.address(page), page.length, 0), refusal('ibv_mr'))
  t.throws(() => new QueuePair(misled, 64, 64), refusal('ibv_qp'))
})

await t.test('who gets another address uses it for new connections at once', async t => {
  const before = requireAdapter()
  const address = deviceAddress() as string
  t.teardown(() => execFileSync('sh', ['-ec', moveAddress(OTHER_ADDRESS, address)]))
  execFileSync('sh', ['-ec', moveAddress(address, OTHER_ADDRESS)])
  await until('the news', () => before.isOutdated && deviceAddress() === OTHER_ADDRESS)
  t.not(requireAdapter(), before)
  await until('the end of the one before', () => before.isClosed)
  const [near, far] = await connectEnds(requireAdapter(), requireAdapter().cache)
  sendFrame(near, Buffer.from('from here'))
  await until('the frame', () => far.poll(new Handler(() => {}), 1) === 1)
  near.close()
  far.close()
})

function moveAddress(from: string, to: string): string {
  return `ip addr del ${from}/24 dev rdma0; ip addr add ${to}/24 dev rdma0`
}

/** The real one. */
function verbsLibrary(): VerbsLibrary {
  const { library } = loadVerbs()
  if (library === undefined) throw new Error('libibverbs is not there')
  return library
}
