/** How large the rings of a connection may be is for both sides to say. */
import t from 'tap'
import { drivers } from '../../nic/index.ts'
import { Child, plainEnvironment } from '../support/child.ts'
import { program, relinked } from '../support/relinked.ts'

const MIB = 1 << 20

for (const [name, driver] of drivers) {
  // These have queues of descriptors, and no rings.
  if (name === 'verbs' || name === 'loopback' || name === 'ethernet') continue
  const availability = driver.availability()
  const skip = availability.usable ? false : availability.reason

  t.test(`${name}: who connects takes no larger rings than it wants`, { skip }, async t => {
    const offer = driver.offer({ queueSize: 4 * MIB })
    offer.accepted.then(
      end => end.close(),
      () => {},
    )
    await t.rejects(driver.connect(offer.blob, { queueSizeMax: MIB }), {
      code: 'ERR_NIC_PROTOCOL_VIOLATION',
      message: /ring size 4194304/,
    })
    const other = driver.offer({ queueSize: 4 * MIB })
    const [near, far] = await Promise.all([driver.connect(other.blob), other.accepted])
    t.equal(near.capabilities.frameMax, MIB / 2)
    near.close()
    far.close()
  })
}

t.test('a server that offers rings of more than 1 MiB is reached over TCP', async t => {
  const connect = async (ringSize: number): Promise<unknown> => {
    const env = { ...plainEnvironment(), FASTSOCKETS_ABLATE: `ring=${ringSize}` }
    const server = new Child(t, program('server'), ['echo'], relinked({ env }))
    const { port } = await server.receive<{ port: number }>()
    const client = new Child(t, program('client'), [String(port)], relinked())
    return await client.receive()
  }
  t.match(await connect(MIB), { connected: 'shm' })
  t.match(await connect(16 * MIB), { connected: 'tcp' })
})
