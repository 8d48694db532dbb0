/** What Node promises about the order of events holds for fast sockets: a program may rely on it without knowing. */
import t from 'tap'
import { Child } from '../support/child.ts'
import { program, relinked } from '../support/relinked.ts'

t.test('an immediate that is set while a program hears of I/O comes before timers and other I/O', async t => {
  const plain = await new Child(t, program('io-order')).receive<string[]>()
  t.strictSame(
    plain,
    ['client asks', 'client data', 'end', 'request', 'response', 'server data'].map(
      who => `${who}: immediate`,
    ),
  )
  t.strictSame(await new Child(t, program('io-order'), [], relinked()).receive<string[]>(), plain)
})

t.test("a handle of the program's own sees what the last write of another socket has left", async t => {
  const plain = await new Child(t, program('own-handle')).receive<boolean[]>()
  t.strictSame(plain, [false, true])
  t.strictSame(await new Child(t, program('own-handle'), [], relinked()).receive<boolean[]>(), plain)
})

t.test('what is sent within a process while its sender hears of something waits for immediates', async t => {
  const plain = await new Child(t, program('own-replies')).receive<string[]>()
  t.strictSame(plain, ['said, ready, answer'])
  t.strictSame(await new Child(t, program('own-replies'), [], relinked()).receive<string[]>(), plain)
})

t.test('requests of several http2 sessions close in the order in which they do over TCP', async t => {
  const plain = await new Child(t, program('http2-closes')).receive<string[]>()
  t.strictSame(plain.slice().sort(), ['0.0', '1.0', '1.1', '2.0', '2.1', '2.2'])
  t.strictSame(await new Child(t, program('http2-closes'), [], relinked()).receive<string[]>(), plain)
})

t.test("'finish' comes after all that was heard in its turn, and before immediates", async t => {
  const plain = await new Child(t, program('ends')).receive<string[]>()
  t.strictSame(plain, [
    'data: finish',
    'file: finish',
    'immediate: finish',
    'pair: data, data, finish',
    'timer: finish',
  ])
  t.strictSame(await new Child(t, program('ends'), [], relinked()).receive<string[]>(), plain)
})

t.test(
  'within a process a connection is heard of by its server first, and by its client before immediates',
  async t => {
    const plain = await new Child(t, program('own-connects')).receive<string[]>()
    t.strictSame(plain, ['connection, connect, immediate, data', 'together: 0, 1, 2'])
    t.strictSame(await new Child(t, program('own-connects'), [], relinked()).receive<string[]>(), plain)
  },
)

t.test('what a doorbell has announced is heard as any I/O is, and what its listener throws, too', async t => {
  const plain = await new Child(t, program('woken')).receive<string[]>()
  t.strictSame(plain, ['thrown, tick, microtask, immediate'])
  t.strictSame(await new Child(t, program('woken'), [], relinked()).receive<string[]>(), plain)
})

t.test('what a peer answers at once is heard after the immediates', async t => {
  const plain = await new Child(t, program('overtaking')).receive<object>()
  t.strictSame(plain, { inOrder: 20, overtaken: 0 })
  t.strictSame(await new Child(t, program('overtaking'), [], relinked()).receive<object>(), plain)
})
