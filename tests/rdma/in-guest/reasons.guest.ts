/** Everything that can be wrong with a device, provoked: each has a name, and a text that says what to do. */
import { execFile, execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Worker } from 'node:worker_threads'
import t from 'tap'
import { NicError } from '../../../nic/errors.ts'
import { BROKEN } from '../../../nic/status.ts'
import { chooseDevice } from '../../../nic/verbs/device-choice.ts'
import {
  ASYNC_DEVICE_FATAL,
  ASYNC_TYPE,
  WC_FLUSHED,
  WC_RETRY_EXCEEDED,
  WC_RNR_RETRY_EXCEEDED,
} from '../../../nic/verbs/library-layout.ts'
import { requireAdapter } from '../../../nic/verbs/open-adapter.ts'
import { QueuePair } from '../../../nic/verbs/queue-pair.ts'
import { RegistrationCache } from '../../../nic/verbs/registration-cache.ts'
import { WORK_SEND } from '../../../nic/verbs/send-queue.ts'
import { VerbsAdapter } from '../../../nic/verbs/verbs-adapter.ts'
import { VerbsInterface } from '../../../nic/verbs/verbs-interface.ts'
import { loadVerbs, type VerbsLibrary } from '../../../nic/verbs/verbs-library.ts'
import { plainEnvironment } from '../../support/child.ts'
import { sendFrame } from '../../support/frames.ts'
import { until } from '../../support/until.ts'

const REPORT = fileURLToPath(new URL('../programs/device-report.js', import.meta.url))
/** IBV_WC_REM_ACCESS_ERR. */
const REMOTE_ACCESS_ERROR = 10
const NOBODY = 'setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs'

interface Report {
  readonly device?: string
  readonly end?: { state: string; code: string; message: string; status: number }
  /** The command that took the device away came to its end. */
  readonly commandEnded?: boolean
  readonly availability: { usable: boolean; code?: string; reason?: string }
}

/** What a program reports that starts after `preparation`, in a mount namespace of its own. */
async function report(preparation: string, env: NodeJS.ProcessEnv = {}, command?: string): Promise<Report> {
  const script = `${preparation} "$0" "$@"`
  const node = [process.execPath, REPORT, ...(command === undefined ? [] : [command])]
  const { stdout } = await promisify(execFile)('unshare', ['--mount', 'sh', '-c', script, ...node], {
    env: { ...plainEnvironment(), ...env },
  })
  return JSON.parse(stdout) as Report
}

/** A second device, over an interface of its own. */
function addDevice(name: string, link: string): void {
  const commands = [
    `ip link add ${link} type veth peer name ${link}-peer`,
    `ip addr add 10.79.${link.slice(-1)}.1/24 dev ${link}`,
    `ip link set ${link}-peer up`,
    `ip link set ${link} up`,
    `rdma link add ${name} type rxe netdev ${link}`,
  ]
  execFileSync('sh', ['-ec', commands.join('\n')])
}

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
    [
      'the connection manager',
      'VERBS_IWARP',
      /rxe0 is iWARP/,
      'echo "4: RNIC" > /tmp/iwarp; mount --bind /tmp/iwarp $(readlink -f /sys/class/infiniband/rxe0)/node_type; exec',
    ],
    ['an address', 'VERBS_NO_GID', /no address/, 'exec', { FASTSOCKETS_VERBS_GID_INDEX: '200' }],
  ]
  for (const [what, code, reason, preparation, env] of cases) {
    t.test(what, async t =>
      t.match((await report(preparation, env)).availability, { usable: false, code, reason }),
    )
  }
})

await t.test('what a library or a kernel says that cannot be used has a name, too', async t => {
  const real = loadVerbs().library as VerbsLibrary
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

// The software device never fails: the library's word for it is put in its mouth.
await t.test('a device that fails ends the connections over it', async t => {
  const real = loadVerbs().library as VerbsLibrary
  const chosen = chooseDevice(real)
  if (!('context' in chosen)) throw new Error(chosen.reason)
  const listeners: (() => void)[] = []
  let events = 1
  const failing: VerbsLibrary = {
    ...real,
    watch: (fd, listener) => {
      listeners.push(listener)
      return real.watch(fd, listener)
    },
    ibv_get_async_event: (_context, event) => {
      if (events-- === 0) return -1
      new DataView(event.buffer, event.byteOffset).setInt32(ASYNC_TYPE, ASYNC_DEVICE_FATAL, true)
      return 0
    },
    ibv_ack_async_event: () => {},
  }
  const adapter = new VerbsAdapter(failing, chosen.context, chosen.port)
  const end = new VerbsInterface(adapter, new RegistrationCache(adapter), 64 * 1024)
  for (const listener of listeners) listener()
  t.match(end, {
    state: 'broken',
    failure: { code: 'ERR_NIC_UNAVAILABLE', message: /has failed or was removed/ },
  })
  t.throws(() => new VerbsInterface(adapter, new RegistrationCache(adapter), 64 * 1024), {
    code: 'ERR_NIC_UNAVAILABLE',
  })
  t.notOk(adapter.isClosed, 'the device is in use')
  end.close()
  await until('the end of its use', () => adapter.isClosed)
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
    t.ok(commandEnded, 'whoever removes it need not wait for the end of the process')
    t.match(availability, { usable: false, code: 'VERBS_LOST', reason: /^rxe2 was removed/ })
  },
)

await t.test('structures that lie elsewhere are refused', async t => {
  const real = loadVerbs().library as VerbsLibrary
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
  const adapter = requireAdapter()
  const misled = Object.create(adapter, { verbs: { value: moved } }) as VerbsAdapter
  const page = new Uint8Array(new ArrayBuffer(4096))
  t.throws(() => misled.register(real.libc.address(page), page.length, 0), refusal('ibv_mr'))
  t.throws(() => new QueuePair(misled, 64, 64, 0), refusal('ibv_qp'))
})
