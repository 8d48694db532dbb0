/** Which clients reach a unix listener the fast way: those that may connect to its file, and none that guesses. */

import { once } from 'node:events'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { unixKey } from '../../fastsockets/host/unix-paths.ts'
import net, { type Socket } from '../../fastsockets/index.ts'
import { AF_UNIX, SOCK_CLOEXEC, SOCK_STREAM } from '../../nic/posix/constants.ts'
import { requireLibc } from '../../nic/posix/libc.ts'
import { abstractAddress } from '../../nic/posix/unix-socket.ts'
import { Child, plainEnvironment } from '../support/child.ts'
import { NOBODY, noOtherUser } from '../support/other-user.ts'
import { program, relinked } from '../support/relinked.ts'

const skip = noOtherUser(program('other-user-client'))
const letsIn = { ...plainEnvironment(), FASTSOCKETS_USERS: `0,${NOBODY}` }
const nobody = { env: letsIn, uid: NOBODY, gid: NOBODY }

t.test(
  'another user that the policy lets in does not get past the permissions of a socket file',
  { skip },
  async t => {
    const path = join(shortFolder(t), 'admin.sock')
    const server = new Child(t, program('two-listeners'), [path], relinked({ env: letsIn }))
    const { port } = await server.receive<{ port: number }>()
    chmodSync(path, 0o600)
    const key = unixKey(path) as string
    const hostile = new Child(t, program('other-user-client'), [String(port), key], nobody)
    t.strictSame(await hostile.receive(), {
      byKey: 'refused',
      byNothing: 'refused',
      shadowSaid: 0,
      greeted: 'OTHER_USER',
    })
    const own = new Child(t, program('unix'), ['client', path], relinked({ env: letsIn }))
    t.match(await own.receive(), { transport: 'shm' }, 'our own user does')
  },
)

t.test('a socket file that another user may write to: the kernel serves that user', { skip }, async t => {
  const folder = shortFolder(t)
  const path = join(folder, 'open.sock')
  const server = new Child(t, program('unix'), ['server', path], relinked({ env: letsIn }))
  await server.receive()
  chmodSync(folder, 0o755)
  chmodSync(path, 0o666)
  const client = new Child(t, program('unix'), ['client', path], relinked(nobody))
  const told = await client.receive()
  t.match(told, { transport: 'pipe', reason: { code: 'OTHER_USER' } })
})

/** A unix path may be 107 bytes long: too short for a folder of tap's. */
function shortFolder(t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), 'fs-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

t.test('an abstract name has no permissions: users that the policy allows are fast', { skip }, async t => {
  const name = `@fastsockets-open-${process.pid}`
  const server = new Child(t, program('unix'), ['server', name], relinked({ env: letsIn }))
  await server.receive()
  const client = new Child(t, program('unix'), ['client', name], relinked(nobody))
  t.match(await client.receive(), { transport: 'shm' })
})

t.test('a client that binds to a name of a bridge does not choose what remoteAddress is', async t => {
  const path = join(shortFolder(t), 's')
  const server = net.createServer().listen(path)
  await once(server, 'listening')
  t.teardown(() => void server.close())
  const libc = requireLibc()
  const fd = libc.socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)
  const ends = abstractAddress('fs-ends-deadbeef-127.0.0.1,443,10.0.0.1,4444')
  t.equal(libc.bind(fd, ends, ends.length), 0)
  const accepted = once(server, 'connection')
  const to = Buffer.alloc(2 + path.length + 1)
  to.writeUInt16LE(AF_UNIX)
  to.write(path, 2)
  t.equal(libc.connect(fd, to, to.length), 0)
  const [socket] = (await accepted) as [Socket]
  t.equal(socket.remoteAddress, undefined)
  t.equal(socket.remotePort, undefined)
  t.equal(socket.localAddress, undefined)
  socket.destroy()
  libc.close(fd)
})
