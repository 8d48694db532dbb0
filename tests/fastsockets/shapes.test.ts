/**
 * All sockets that connect have one shape, whichever way they went. What V8 has compiled of Node is for the shapes that it has
 * met: each time that a server which is not relinked was asked again, it would compile all of that anew.
 */
import t from 'tap'
import { Child } from '../support/child.ts'
import { program, relinked } from '../support/relinked.ts'

for (const [kind, options, transport] of [
  ['is', relinked(), 'shm'],
  ['is not', {}, 'tcp'],
] as const) {
  t.test(`sockets that have asked a server that ${kind} relinked, and that know it`, async t => {
    const server = new Child(t, program('server'), ['echo'], options)
    const { port } = await server.receive<{ port: number }>()
    const watching = relinked({ execArgv: ['--allow-natives-syntax'] })
    const client = new Child(t, program('shapes'), ['127.0.0.1', String(port)], watching)
    t.strictSame(await client.receive(), { transport, whileUp: true, whenClosed: true })
  })
}
