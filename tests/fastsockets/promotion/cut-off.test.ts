/** The end of a connection that has moved when its peer dies with bytes that TCP still had to carry: TCP's own. */
import t from 'tap'
import { Child, plainEnvironment } from '../../support/child.ts'
import { program, relinked } from '../../support/relinked.ts'

const env = { ...plainEnvironment(), FASTSOCKETS_START: 'tcp', FASTSOCKETS_ABLATE: 'price=0' }

for (const [name, options] of Object.entries({ plain: {}, moved: relinked({ env }) }))
  t.test(name, async t => {
    const server = new Child(t, program('cut-off'), ['server'], options)
    const { port } = await server.receive<{ port: number }>()
    const client = new Child(t, program('cut-off'), ['client', String(port)], options)
    t.equal(await client.receive(), 'written')
    await client.kill()
    t.strictSame(await server.ask({ resume: true }), { end: 'end', isShort: true })
  })
