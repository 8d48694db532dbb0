/** What listeners throw reaches the program's handler in the context in which it does plain: test runners look there. */
import t from 'tap'
import { Child } from '../../support/child.ts'
import { program, relinked } from '../../support/relinked.ts'

t.test('errors of listeners belong to the context that made the socket', async t => {
  const plain = await new Child(t, program('thrown')).receive<string[]>()
  t.equal(plain.length, 4)
  t.strictSame(await new Child(t, program('thrown'), [], relinked()).receive<string[]>(), plain)
})

t.test('a next tick that throws behind native code is an error like any other', async t => {
  const plain = await new Child(t, program('thrown-ends')).receive<string[]>()
  t.strictSame(plain, ['end 0', 'end 1', 'end 2'])
  t.strictSame(await new Child(t, program('thrown-ends'), [], relinked()).receive<string[]>(), plain)
})

t.test('a write of http2 whose callback throws is over, and only once', async t => {
  const plain = await new Child(t, program('thrown-by-http2')).receive<string[]>()
  t.strictSame(plain, ['handled: from a callback', 'read answer', 'read rest', 'end'])
  t.strictSame(await new Child(t, program('thrown-by-http2'), [], relinked()).receive<string[]>(), plain)
})

for (const event of ['end', 'finish', 'prefinish']) {
  t.test(
    `a listener of '${event}' that throws is heard of, and else ends the program with its error`,
    async t => {
      for (const options of [{}, relinked()]) {
        const told = new Child(t, program('thrown-ticks'), [event, 'handled'], options)
        t.equal(await told.receive<string>(), `thrown at ${event}`)
        t.match(await told.exited, { code: 0 })
        const ended = new Child(t, program('thrown-ticks'), [event], options)
        t.match(await ended.exited, { code: 1 })
        t.match(ended.stderr, `Error: thrown at ${event}`)
      }
    },
  )
}

t.test('an error with native code below it and above it ends the program', async t => {
  for (const options of [{}, relinked()]) {
    const child = new Child(t, program('thrown-under-tls'), [], options)
    t.match(await child.exited, { code: 1 })
    t.match(child.stderr, 'nobody handles this')
  }
})
