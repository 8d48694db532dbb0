/** What programs ask of their sockets in unusual ways comes out as it does plain. */
import t from 'tap'
import { Child } from '../support/child.ts'
import { program, relinked } from '../support/relinked.ts'

const EXPECTED: Record<string, unknown> = {
  'connect twice': ['EALREADY', true],
  'strange ports': [
    'ERR_INVALID_ARG_TYPE',
    'ERR_INVALID_ARG_TYPE',
    'ERR_INVALID_ARG_TYPE',
    'ERR_INVALID_ARG_TYPE',
  ],
  contexts: ['write: write', 'end: end'],
  'a reader that throws': { bytesRead: 45, thrown: 2 },
  'measured connects': ['connect'],
  'names after the end': ['127.0.0.1', 'undefined'],
}

for (const [task, expected] of Object.entries(EXPECTED)) {
  t.test(task, async t => {
    for (const options of [{}, relinked()]) {
      const server = new Child(t, program('server'), ['echo'], options)
      const { port } = await server.receive<{ port: number }>()
      const client = new Child(t, program('asking'), [task, String(port)], options)
      t.strictSame(await client.receive(), expected)
    }
  })
}

t.test('a socket that was unreferenced at once still connects, writes and ends', async t => {
  for (const options of [{}, relinked()]) {
    const server = new Child(t, program('server'), ['echo'], options)
    const { port } = await server.receive<{ port: number }>()
    const client = new Child(t, program('asking'), ['unref at once', String(port)], options)
    t.match(await server.receive(), { accepted: options.execArgv ? 'shm' : 'tcp' })
    t.match(await client.exited, { code: 0 })
  }
})
