import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import net from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { ControlConnection, type ControlListener } from '../../../am/rendezvous/control-connection.ts'
import { type ControlMessage, LINE_MAX } from '../../../am/rendezvous/control-messages.ts'
import { until, withWatchdog } from '../../support/until.ts'

class Log implements ControlListener {
  readonly messages: ControlMessage[] = []
  ends = 0

  handleControl(message: ControlMessage): void {
    this.messages.push(message)
  }

  handleControlEnd(): void {
    this.ends++
  }
}

interface Pair {
  readonly connection: ControlConnection
  /** The other end, as whoever it is has it. */
  readonly other: net.Socket
}

async function openPair(t: Test): Promise<Pair> {
  const path = `\0fastsockets-test-${randomUUID()}`
  const server = net.createServer().listen(path)
  await once(server, 'listening')
  const other = net.connect(path)
  const [[socket]] = await Promise.all([once(server, 'connection'), once(other, 'connect')])
  server.close()
  other.on('error', () => {})
  t.teardown(() => {
    other.destroy()
    socket.destroy()
  })
  return { connection: new ControlConnection(socket), other }
}

t.test('lines are messages, in whatever pieces they come', async t => {
  const { connection, other } = await openPair(t)
  const log = new Log()
  connection.listen(log)
  const text = '{"op":"map","id":1,"tag":"0000000000000000"}\n{"op":"unmap"}\n{"op":"bye"}\n'
  for (const character of text) {
    other.write(character)
    await nextTurn()
  }
  other.write(text + text)
  await until('all messages', () => log.messages.length === 9)
  t.match(log.messages.slice(0, 3), [{ op: 'map', id: 1 }, { op: 'unmap' }, { op: 'bye' }])
  t.equal(log.ends, 0)
})

t.test('what is sent is a line each', async t => {
  const { connection, other } = await openPair(t)
  let heard = ''
  other.setEncoding('utf8').on('data', text => {
    heard += text
  })
  connection.send({ op: 'unmap' })
  connection.send({ op: 'refuse', code: 'LIMIT', text: 'two\nlines' })
  connection.end()
  await once(other, 'end')
  t.equal(heard, '{"op":"unmap"}\n{"op":"refuse","code":"LIMIT","text":"two\\nlines"}\n')
})

t.test('what was heard before anybody listens is told to whoever does', async t => {
  const { connection, other } = await openPair(t)
  other.end('{"op":"unmap"}\n{"op":"bye"}\n')
  await withWatchdog('the end', connection.over)
  const log = new Log()
  connection.listen(log)
  t.strictSame(log.messages, [{ op: 'unmap' }, { op: 'bye' }])
  t.equal(log.ends, 1)
})

t.test('while one listener has left and the next has not come, little is kept', async t => {
  const { connection, other } = await openPair(t)
  other.write('{"op":"unmap"}\n'.repeat(17))
  await withWatchdog('the end', connection.over)
  const log = new Log()
  connection.listen(log)
  t.equal(log.ends, 1)
})

for (const [what, line] of [
  ['is no JSON', 'hello\n'],
  ['is no message', '{"op":"hello"}\n'],
  ['is empty', '\n'],
  ['is too long', `{"op":"bye","x":"${'x'.repeat(LINE_MAX)}"}\n`],
  ['has no end', 'x'.repeat(LINE_MAX + 1)],
  ['is no text', Buffer.from([0xff, 0xfe, 0x0a])],
] as const) {
  t.test(`a line that ${what} ends the connection, and what follows is not heard`, async t => {
    const { connection, other } = await openPair(t)
    const log = new Log()
    connection.listen(log)
    other.write('{"op":"unmap"}\n')
    other.write(line)
    other.write('{"op":"bye"}\n')
    await withWatchdog('the end', connection.over)
    t.strictSame(log.messages, [{ op: 'unmap' }])
    t.equal(log.ends, 1)
  })
}

t.test('whoever asks and never listens is hung up on', async t => {
  const { connection, other } = await openPair(t)
  other.pause()
  const log = new Log()
  connection.listen(log)
  let sent = 0
  for (; log.ends === 0 && sent < 1_000_000; sent++) {
    connection.send({ op: 'map', id: 0, tag: '0000000000000000' })
    if (sent % 1000 === 0) await nextTurn()
  }
  t.ok(sent > 10_000, 'somebody who is merely slow is not')
  t.ok(sent < 1_000_000, `${sent} messages`)
  t.equal(log.ends, 1)
})
