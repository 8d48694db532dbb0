/** Strangers that call and do not finish leave room for honest clients. */
import { once } from 'node:events'
import t from 'tap'
import { hashedPort } from '../../fastsockets/bootstrap/hashed-port.ts'
import { Child } from '../support/child.ts'
import { NOBODY, noOtherUser } from '../support/other-user.ts'
import { portWithFirstHashed } from '../support/ports.ts'
import { program, relinked } from '../support/relinked.ts'

const skip = noOtherUser(program('crowding'))

for (const how of ['silent', 'hello', 'door'])
  t.test(`600 callers of another user, ${how}: a client of our own is fast`, { skip }, async t => {
    const port = await portWithFirstHashed()
    const server = new Child(t, program('server'), ['echo', '127.0.0.1', String(port)], relinked())
    await server.receive()
    const forged = String(process.getuid?.())
    const crowd = new Child(t, program('crowding'), [String(hashedPort(port, 0)), how, forged], {
      uid: NOBODY,
      gid: NOBODY,
    })
    t.match(await crowd.receive(), { calls: Number })
    for (let i = 0; i < 5; i++) {
      const client = new Child(t, program('client'), [String(port)], relinked())
      t.match(await client.receive(), { connected: 'shm' })
      await client.kill()
    }
    t.equal(crowd.process.exitCode, null, 'they call on and on')
  })

t.test('a server that answers nobody by a function is a plain server that is silent', async t => {
  const server = new Child(t, program('odd-onconnection'), [], relinked())
  for (const value of ['null', 'number', 'object', 'string']) {
    t.same(await server.receive(), { value, heard: 'connect' })
  }
  const [code] = await once(server.process, 'exit')
  t.equal(code, 0)
})
