/** A rendezvous folder that strangers, or processes that were killed, have filled. */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import net from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { publishSocket } from '../../../nic/index.ts'
import { AF_UNIX, SOCK_STREAM } from '../../../nic/posix/constants.ts'
import { requireLibc } from '../../../nic/posix/libc.ts'
import { pathAddress } from '../../../nic/posix/unix-socket.ts'
import { listenerName } from '../../../nic/rendezvous/names-layout.ts'
import { eventually } from '../../support/until.ts'

const LEFT = 3000

t.test('a publisher removes names without a listener in many turns, a few in each', async t => {
  const folder = mkdtempSync(join(tmpdir(), 'rendezvous-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  process.env.FASTSOCKETS_RENDEZVOUS = folder
  const libc = requireLibc()
  for (let port = 1; port <= LEFT; port++) {
    const fd = libc.socket(AF_UNIX, SOCK_STREAM, 0)
    const address = pathAddress(join(folder, listenerName('10.0.0.1', port)))
    if (libc.bind(fd, address, address.length) !== 0) throw new Error(`port ${port} is not bound`)
    libc.close(fd)
  }
  const name = listenerName('10.0.0.2', 1)
  const publication = publishSocket(new net.Server(), [name])
  if (typeof publication === 'string') throw new Error(publication)
  t.teardown(() => publication.close())
  const left = readdirSync(folder).length
  t.ok(left > LEFT / 2, `${left} are left when the name is published`)
  await eventually('an empty folder', () => readdirSync(folder).length === 1)
  t.strictSame(readdirSync(folder), [name], 'and its own name')
})
