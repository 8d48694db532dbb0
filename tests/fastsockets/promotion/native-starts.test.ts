/** TLS and http2 start on TCP, and change their wire below while they are in use. */
import t, { type Test } from 'tap'
import { Child, plainEnvironment } from '../../support/child.ts'
import { program, relinked } from '../../support/relinked.ts'
import type { Seen } from '../programs/native-starts.ts'

const COUNT = 150

async function start(t: Test, ablate: string, isServerPlain = false): Promise<Child> {
  const env = { ...plainEnvironment(), FASTSOCKETS_START: 'tcp', FASTSOCKETS_ABLATE: ablate }
  const serverEnv = isServerPlain ? { ...env, FASTSOCKETS_DISABLE: '1' } : env
  const options = relinked({ env: serverEnv })
  const server = new Child(t, program('native-starts'), ['server'], options)
  const ports = await server.receive<object>()
  const client = new Child(t, program('native-starts'), ['client', JSON.stringify(ports)], relinked({ env }))
  await client.receive()
  return client
}

for (const run of ['tls', 'https', 'http2', 'h2c'])
  t.test(`${run} becomes fast in mid-stream`, async t => {
    const client = await start(t, 'price=60')
    const { isRight, seen } = await client.ask<Seen>({ run, count: COUNT })
    t.ok(isRight, 'every answer is right')
    t.equal(seen[0], 'tcp tcp', 'at first it is on TCP')
    t.equal(seen.at(-1), 'shm shm', `at last it is not: ${seen}`)
    const next = await client.ask<Seen>({ run, count: 3 })
    t.strictSame(next, { isRight: true, seen: ['shm shm'] }, 'the next connection is fast at once')
  })

for (const run of ['tls', 'https', 'http2', 'h2c'])
  t.test(`${run} to a server that is not relinked`, async t => {
    const client = await start(t, 'price=0', true)
    for (let i = 0; i < 2; i++)
      t.match(await client.ask<Seen>({ run, count: COUNT }), { isRight: true, seen: [/^tcp /] })
  })
