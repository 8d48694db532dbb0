/**
 * A host with the kernel's software iWARP device: it is recognised, and used if its connection manager is available. If
 * not, the manager is the reason why connections use TCP.
 */
import { execFileSync } from 'node:child_process'
import t from 'tap'
import { type Driver, drivers } from '../../../nic/index.ts'
import { OK } from '../../../nic/status.ts'
import { NONCE_SIZE } from '../../../nic/verbs/address-layout.ts'
import { requireAdapter } from '../../../nic/verbs/open-adapter.ts'
import { Handler, sendFrame } from '../../support/frames.ts'
import { until } from '../../support/until.ts'
import { addDevice, doctor, report } from '../device-reports.ts'
import { startElsewhere } from '../other-host.ts'

/** In a network namespace. */
const FAR_HOST = '10.77.0.2'
const SERVER = new URL('../programs/socket-server.js', import.meta.url)
const CLIENT = new URL('../programs/wire-report.js', import.meta.url)
/** In the blob of an offer: docs/protocol.md. */
const AT_NONCE = 8
const AT_PORT = 28
/** Fewer than give credit back. */
const FRAMES = 50
const LENGTH = 64
const LIBRARIES = '/usr/lib/x86_64-linux-gnu'
/** The device's own node is there, that of the connection manager is not. */
const UNMANAGED =
  'number=$(tr : " " < /sys/class/infiniband_verbs/uverbs0/dev); mount -t tmpfs t /dev/infiniband; mknod /dev/infiniband/uverbs0 c $number; exec'

await t.test('what its connections need, and what is missing, has a name', async t => {
  t.match((await report(UNMANAGED)).availability, {
    usable: false,
    code: 'VERBS_IWARP',
    reason: /^siw0 is iWARP, .*rdma_cm ENOENT; its module is rdma_ucm/,
  })
  const library = `mount --bind /dev/null ${LIBRARIES}/librdmacm.so.1; exec`
  t.match((await report(library)).availability, {
    code: 'VERBS_IWARP',
    reason: /^siw0 is iWARP, .*install librdmacm1/,
  })
})

await t.test('an unexpected caller is rejected, and the expected one is not disturbed', async t => {
  const verbs = drivers.get('verbs') as Driver
  const offer = verbs.offer()
  const reply = (): void => {}
  const stranger = Buffer.from(offer.blob)
  stranger.fill(0, AT_NONCE, AT_NONCE + NONCE_SIZE)
  await t.rejects(verbs.connect(stranger, { reply }), {
    code: 'ERR_NIC_CONNECT_FAILED',
    message: /the connection manager says of the peer: it rejects the connection/,
  })
  const nobody = Buffer.from(offer.blob)
  nobody.writeUInt32LE(1, AT_PORT)
  await t.rejects(verbs.connect(nobody, { reply }), { message: /rdma_connect ECONNREFUSED/ })
  const ends = await Promise.all([verbs.connect(offer.blob), offer.accepted])
  for (const end of ends) end.close()
  await until('the memory', () => requireAdapter().slabBytes === 0)
})

await t.test('a frame costs one post_send, and its word no memory that is registered', async t => {
  const verbs = drivers.get('verbs') as Driver
  const offer = verbs.offer()
  const [near, far] = await Promise.all([verbs.connect(offer.blob), offer.accepted])
  const { counters } = requireAdapter()
  const { postSends, registrations } = counters
  let arrived = 0
  const sink = new Handler(() => {
    arrived++
  })
  for (let i = 1; i <= FRAMES; i++) {
    t.equal(sendFrame(near, Buffer.alloc(LENGTH, i)), OK)
    await until('the frame', () => {
      far.poll(sink, 1)
      return arrived === i
    })
  }
  t.equal(counters.postSends - postSends, FRAMES)
  t.equal(counters.registrations, registrations)
  near.close()
  far.close()
})

await t.test('doctor names the device, and talks over it', async t => {
  const { code, report } = await doctor()
  const check = (name: string): unknown => report.checks.find(check => check.name === name)
  t.match(check('driver verbs'), {
    state: 'ok',
    detail: /^between hosts: siw0 port 1, iWARP at 10\.77\.0\.1, MTU \d+/,
  })
  t.match(check('live test verbs'), { state: 'ok', detail: /^frames leave by siw0 .* and come back/ })
  t.equal(report.isFast, true)
  t.equal(code, 0)
})

await t.test('without the connection manager doctor says so, and finds nothing wrong', async t => {
  const { code, report } = await doctor(UNMANAGED)
  const check = (name: string): unknown => report.checks.find(check => check.name === name)
  t.match(check('driver verbs'), {
    state: 'note',
    detail: /^cannot be used: VERBS_IWARP: siw0 is iWARP/,
    hint: /docs.rdma\.md/,
  })
  t.match(check('live test'), { state: 'ok', detail: /talk over shm/ })
  t.equal(check('live test verbs'), undefined)
  t.equal(report.isFast, true)
  t.equal(code, 0)
})

await t.test('without it sockets go by TCP, and the reason names the device', async t => {
  const server = startElsewhere(t, SERVER, ['0', FAR_HOST], {}, 'exec ip netns exec far')
  const { port } = await server.next<{ port: number }>()
  const client = startElsewhere(t, CLIENT, [FAR_HOST, `${port}`], {}, UNMANAGED)
  t.match(await client.next(), {
    echo: 'hello',
    wire: { transport: 'tcp', reason: { code: 'REMOTE_HOST', text: /VERBS_IWARP: siw0 is iWARP/ } },
  })
})

await t.test('where there is another device, that one is chosen', async t => {
  addDevice('rxe1', 'link1')
  t.teardown(() => execFileSync('rdma', ['link', 'delete', 'rxe1']))
  const { device, availability } = await report('exec')
  t.match(device, /^rxe1 port 1, GID/)
  t.same(availability, { usable: true })
  const chosen = await report('exec', { FASTSOCKETS_VERBS_DEVICE: 'siw0' })
  t.match(chosen.device, /^siw0 port 1, iWARP/)
})
