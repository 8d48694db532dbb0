/**
 * A program of `node:dgram` that knows nothing of this package but `datagramTransportOf`, which it only asks. argv: 'echo' or 'client', the
 * type of the socket and the address to bind; a client also gets the address and port of the echo. Both answer { pairs: true } with what
 * carries their datagrams. An echo says { port }.
 */
import dgram, { type RemoteInfo } from 'node:dgram'
import { once } from 'node:events'
import { datagramTransportOf } from '../../../fastsockets/datagram/datagram-transport.ts'

const [role, type = 'udp4', own = '', address = '', port = '0'] = process.argv.slice(2)
const socket = dgram.createSocket(type as dgram.SocketType)

export interface Echo {
  readonly length: number
  readonly isSame: boolean
  readonly from: RemoteInfo
  readonly callback: number
}

const SIZES = [0, 1, 24, 25, 1472, 9000, 65_507]

/** Sends one datagram, and waits for its callback and its echo. */
async function echo(message: Buffer | readonly Uint8Array[]): Promise<Echo> {
  const whole = Buffer.isBuffer(message) ? message : Buffer.concat(message)
  const sent = new Promise<number>((resolve, reject) => {
    socket.send(message, Number(port), address, (error, length) => (error ? reject(error) : resolve(length)))
  })
  const [[bytes, from], callback] = await Promise.all([once(socket, 'message'), sent])
  return { length: bytes.length, isSame: whole.equals(bytes), from, callback }
}

/** Many datagrams without waiting; what came back, by number, and in which order callbacks came. */
async function burst(count: number): Promise<{ received: number[]; callbacks: number[] }> {
  const received: number[] = []
  const callbacks: number[] = []
  const done = new Promise<void>(resolve => {
    const listen = (bytes: Buffer): void => {
      received.push(bytes.readUInt32LE(0))
      if (received.length < count) return
      socket.off('message', listen)
      resolve()
    }
    socket.on('message', listen)
  })
  for (let i = 0; i < count; i++) {
    const bytes = Buffer.alloc(64)
    bytes.writeUInt32LE(i, 0)
    socket.send(bytes, Number(port), address, () => callbacks.push(i))
  }
  await done
  return { received, callbacks }
}

interface Question {
  readonly pairs?: true
  readonly echoes?: number
  readonly sizes?: true
  readonly burst?: number
  readonly close?: true
}

async function answer(question: Question): Promise<object> {
  if (question.echoes !== undefined) {
    const seen: Echo[] = []
    for (let i = 0; i < question.echoes; i++) seen.push(await echo(Buffer.from(`datagram ${i}`)))
    return { isSame: seen.every(({ isSame }) => isSame), last: seen.at(-1), own: socket.address() }
  }
  if (question.sizes) {
    const seen: Echo[] = []
    for (const size of SIZES) seen.push(await echo(Buffer.alloc(size, size)))
    seen.push(await echo([Buffer.from('a'), new Uint8Array(3), Buffer.from('list')]))
    return seen
  }
  if (question.burst !== undefined) return await burst(question.burst)
  if (question.close) {
    const closed = once(socket, 'close')
    socket.close()
    await closed
    return {}
  }
  return datagramTransportOf(socket)
}

process.on('message', async (question: Question) => process.send?.(await answer(question)))

if (role === 'echo') {
  socket.on('message', (bytes, { port, address }) => socket.send(bytes, port, address))
  socket.bind(0, own, () => process.send?.({ port: socket.address().port }))
}
