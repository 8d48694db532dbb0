/**
 * One socket of `node:dgram` that does what it is told, and tells what it has received. argv: the type of the socket, the address to bind,
 * a port or 0, and 'reuse' for a socket that may share it. It says { port }, and answers each order.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import dgram from 'node:dgram'
import { datagramTransportOf } from '../../../fastsockets/datagram/datagram-transport.ts'

export interface Order {
  readonly do:
    | 'send'
    | 'take'
    | 'limit'
    | 'ttl'
    | 'connect'
    | 'disconnect'
    | 'throw'
    | 'transport'
    | 'metrics'
    | 'leave'
  readonly port?: number
  readonly count?: number
  readonly size?: number
  readonly bytes?: number
}

/** What has been received since the last `take`: numbers in order of arrival, and whether each was greater than the one before. */
export interface Taken {
  readonly count: number
  readonly isInOrder: boolean
  readonly last: number
  readonly ports: number[]
  readonly errors: string[]
  readonly storage: unknown[]
}

const [type = 'udp4', address = '127.0.0.1', port = '0', reuse = ''] = process.argv.slice(2)
const PACE = 20
const storage = new AsyncLocalStorage<string>()
const socket = storage.run('at creation', () =>
  dgram.createSocket({ type: type as dgram.SocketType, reuseAddr: reuse === 'reuse' }),
)

let received: { number: number; port: number; storage: unknown }[] = []
let errors: string[] = []
let throwsAt = -1
let next = 0

function listen(bytes: Buffer, from: dgram.RemoteInfo): void {
  const number = bytes.length >= 4 ? bytes.readUInt32LE(0) : -1
  received.push({ number, port: from.port, storage: storage.getStore() })
  if (number === throwsAt) throw new Error('thrown')
}

/** In one of the forms of arguments that `send` has; to the peer of the connected socket if `port` is 0. */
function sendInForm(form: number, bytes: Buffer, port: number, done: (error: Error | null) => void): void {
  const to = address === '0.0.0.0' ? '127.0.0.1' : address
  if (port === 0) {
    if (form === 0) socket.send(bytes, done)
    else if (form === 1) socket.send([bytes], done)
    else socket.send(bytes, 0, bytes.length, done)
  } else if (form === 0) socket.send(bytes, port, to, done)
  else if (form === 1) socket.send([bytes], port, to, done)
  else socket.send(bytes, 0, bytes.length, port, to, done)
}

/** Sends `count` numbered datagrams, some in each turn of the event loop. Settles with the number of callbacks in order. */
async function send({ port = 0, count = 1, size = 64 }: Order): Promise<object> {
  const callbacks: number[] = []
  const first = next
  for (; next < first + count; ) {
    for (let i = 0; i < PACE && next < first + count; i++, next++) {
      const bytes = Buffer.alloc(size)
      bytes.writeUInt32LE(next, 0)
      const number = next
      const done = (error: Error | null): void => {
        if (error) errors.push((error as NodeJS.ErrnoException).code ?? '')
        callbacks.push(number)
      }
      sendInForm(number % 3, bytes, port, done)
    }
    await new Promise(resolve => setImmediate(resolve))
  }
  while (callbacks.length < count) await new Promise(resolve => setImmediate(resolve))
  return { sent: next, isInOrder: callbacks.every((number, i) => number === first + i) }
}

function take(): Taken {
  const numbers = received.map(({ number }) => number)
  const taken = {
    count: numbers.length,
    isInOrder: numbers.every((number, i) => i === 0 || number > (numbers[i - 1] as number)),
    last: numbers.at(-1) ?? -1,
    ports: [...new Set(received.map(one => one.port))],
    errors,
    storage: [...new Set(received.map(one => one.storage))],
  }
  received = []
  errors = []
  return taken
}

/** The samples of the two metrics of datagrams, by name and direction. */
async function metrics(): Promise<Record<string, number>> {
  const [{ registerMetrics }, { Registry }] = await Promise.all([
    import('../../../fastsockets/metrics.ts'),
    import('prom-client'),
  ])
  const registry = new Registry()
  registerMetrics({ registry })
  const text = await registry.metrics()
  const samples = text.matchAll(/^fastsockets_datagrams(\w*)_total\{direction="(\w+)"\} (\d+)$/gm)
  return Object.fromEntries(
    [...samples].map(([, name, direction, value]) => [`${direction}${name}`, Number(value)]),
  )
}

async function obey(order: Order): Promise<object> {
  switch (order.do) {
    case 'send':
      return await send(order)
    case 'take':
      return take()
    case 'limit':
      socket.setRecvBufferSize(order.bytes ?? 0)
      return { size: socket.getRecvBufferSize() }
    case 'ttl':
      socket.setTTL(64)
      return {}
    case 'connect':
      await new Promise<void>(resolve => socket.connect(order.port ?? 0, '127.0.0.1', resolve))
      return socket.remoteAddress()
    case 'disconnect':
      socket.disconnect()
      return {}
    case 'throw':
      throwsAt = order.count ?? -1
      return {}
    case 'metrics':
      return await metrics()
    case 'leave':
      socket.close()
      process.disconnect()
      return {}
    default:
      return datagramTransportOf(socket)
  }
}

process.on('uncaughtException', error => errors.push(error.message))
process.on('message', async (order: Order) => {
  const answer = await obey(order)
  if (process.connected) process.send?.(answer)
})
socket.on('message', listen)
socket.on('error', error => errors.push((error as NodeJS.ErrnoException).code ?? error.message))
socket.bind(Number(port), address, () => process.send?.({ port: socket.address().port }))
