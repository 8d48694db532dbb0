/**
 * Calls of `node:dgram` in a fixed order, with what each has returned or reported: the same whatever carries the datagrams. argv: the port of
 * an echo on 127.0.0.1, its type, and how many datagrams go there and back first. It says { journal, pairs }, and ends by itself.
 */
import dgram, { type RemoteInfo } from 'node:dgram'
import { once } from 'node:events'
import { datagramTransportOf } from '../../../fastsockets/datagram/datagram-transport.ts'

const [port = 0, warmUps = 0] = process.argv.slice(2).map(Number)
const journal: unknown[] = []

function note(...what: unknown[]): void {
  journal.push(JSON.parse(JSON.stringify(what)))
}

/** What a call throws, by its code. */
function codeOf(call: () => unknown): unknown {
  try {
    call()
    return 'returned'
  } catch (error) {
    return (error as NodeJS.ErrnoException).code
  }
}

async function answer(socket: dgram.Socket, send: () => void): Promise<string> {
  const received = once(socket, 'message') as Promise<[Buffer, RemoteInfo]>
  send()
  const [bytes, { address, family, size }] = await received
  return `${address} ${family} ${size} ${bytes.toString('latin1')} ${bytes.byteOffset}`
}

const to = [port, '127.0.0.1'] as const
const socket = dgram.createSocket('udp4')
socket.bind(0, '127.0.0.1')
await once(socket, 'listening')
for (let i = 0; i < warmUps; i++) await answer(socket, () => socket.send('warm', ...to))
for (let i = 0; i < 500 && warmUps > 0; i++) {
  if (datagramTransportOf(socket).transport === 'shm') break
  await answer(socket, () => socket.send('warm', ...to))
}
const { pairs } = datagramTransportOf(socket)

note(
  'a list',
  await answer(socket, () => socket.send(['one', Buffer.from('two'), new Uint8Array([33])], ...to)),
)
note('a part', await answer(socket, () => socket.send(Buffer.from('abcdef'), 2, 3, ...to)))
note('a view', await answer(socket, () => socket.send(new DataView(new ArrayBuffer(3)), ...to)))
note('a name', await answer(socket, () => socket.send('by name', port, 'localhost')))
note('nothing', await answer(socket, () => socket.send('', ...to)))
const queues: number[] = []
const order: string[] = []
let answers = 0
const answered = new Promise<void>(resolve => {
  socket.on('message', function count() {
    if (++answers < 2) return
    socket.off('message', count)
    resolve()
  })
})
const done = new Promise<void>(resolve => {
  socket.send('first', ...to, (error, bytes) => order.push(`first ${error} ${bytes}`))
  socket.send('second', ...to, (error, bytes) => {
    order.push(`second ${error} ${bytes}`)
    resolve()
  })
  order.push('sends have returned')
  process.nextTick(() => order.push('a tick'))
  queues.push(socket.getSendQueueSize(), socket.getSendQueueCount())
})
await done
note('order', order, queues)
await answered
const reused = Buffer.from('before')
note(
  'memory of the program',
  await answer(socket, () => {
    socket.send(reused, ...to, () => reused.fill('x'))
  }),
)
const failure = new Promise(resolve => socket.send(Buffer.alloc(65_508), ...to, error => resolve(error)))
const { code, syscall, address } = (await failure) as NodeJS.ErrnoException & { address: string }
note('too long', code, syscall, address)
note(
  'a bad port',
  codeOf(() => socket.send('x', 65_536, '127.0.0.1')),
)
note(
  'bound',
  codeOf(() => socket.bind(0)),
)
note('address', { ...socket.address(), port: 0 })
note(
  'not connected',
  codeOf(() => socket.remoteAddress()),
  codeOf(() => socket.disconnect()),
)
note('ref and unref', socket.unref() === socket, socket.ref() === socket)

const byFirstSend = dgram.createSocket('udp4')
note(
  'bound on first send',
  await answer(byFirstSend, () => byFirstSend.send('unbound', ...to)),
  byFirstSend.address().address,
)
byFirstSend.close()
await once(byFirstSend, 'close')
note(
  'closed',
  codeOf(() => byFirstSend.send('x', ...to)),
  codeOf(() => byFirstSend.address()),
  codeOf(() => byFirstSend.close()),
)

const stop = new AbortController()
const abortable = dgram.createSocket({ type: 'udp4', signal: stop.signal })
note('abortable', await answer(abortable, () => abortable.send('abortable', ...to)))
stop.abort()
await once(abortable, 'close')

const connected = dgram.createSocket('udp4')
connected.connect(...to)
await once(connected, 'connect')
for (let i = 0; i < warmUps; i++) await answer(connected, () => connected.send('warm'))
note(
  'connected',
  await answer(connected, () => connected.send('connected')),
  connected.remoteAddress().address,
)
note(
  'connected, with an address',
  codeOf(() => connected.send('x', ...to)),
  codeOf(() => connected.connect(...to)),
)
connected.disconnect()
note(
  'disconnected',
  codeOf(() => connected.remoteAddress()),
  await answer(connected, () => connected.send('again', ...to)),
)
connected.close()

// An unref'd socket keeps no program alive, with or without a channel.
socket.unref()
process.send?.({ journal, pairs }, () => process.disconnect())
