/**
 * A host whose device is an iWARP one, the kernel's own: it is told from the others, and named as the reason why connections
 * go by TCP.
 */
import { once } from 'node:events'
import t from 'tap'
import net, { transportOf } from '../../../fastsockets/index.ts'
import { withWatchdog } from '../../support/until.ts'
import { addDevice, doctor, report } from '../device-reports.ts'
import { startElsewhere } from '../other-host.ts'

/** In a network namespace. */
const FAR_HOST = '10.77.0.2'
const SERVER = new URL('../programs/socket-server.js', import.meta.url)
const WAIT_MS_MAX = 60_000
const LENGTH = 100_000

await t.test('the device is refused by name', async t => {
  const { device, availability } = await report('exec')
  t.equal(device, undefined)
  t.match(availability, { usable: false, code: 'VERBS_IWARP', reason: /^siw0 is iWARP/ })
})

await t.test('doctor says so, and finds nothing wrong', async t => {
  const { code, report } = await doctor()
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

await t.test('sockets go by TCP, and the reason names the device', async t => {
  const server = startElsewhere(t, SERVER, ['0', FAR_HOST], {}, 'exec ip netns exec far')
  const { port } = await server.next<{ port: number }>()
  const socket = net.connect({ port, host: FAR_HOST, allowHalfOpen: true })
  await withWatchdog('the connection', once(socket, 'connect'), WAIT_MS_MAX)
  const bytes = Buffer.alloc(LENGTH, 'iWARP')
  const chunks: Buffer[] = []
  socket.on('data', chunk => chunks.push(chunk))
  socket.write('e')
  socket.end(bytes)
  await withWatchdog('the end', once(socket, 'end'), WAIT_MS_MAX)
  t.ok(Buffer.concat(chunks).equals(bytes))
  t.match(transportOf(socket), {
    transport: 'tcp',
    reason: { code: 'REMOTE_HOST', text: /VERBS_IWARP: siw0 is iWARP/ },
  })
})

await t.test('where there is another device, that one is chosen', async t => {
  addDevice('rxe1', 'link1')
  const { device, availability } = await report('exec')
  t.match(device, /^rxe1 port 1/)
  t.same(availability, { usable: true })
  const choice = { FASTSOCKETS_VERBS_DEVICE: 'siw0' }
  t.match((await report('exec', choice)).availability, { code: 'VERBS_IWARP' })
})
