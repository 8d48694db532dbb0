/**
 * A client or a server that streams both ways and is killed at one exact point: when it reaches a step of the bootstrap,
 * or at its n-th store to memory that it may share with its peer: right before it if n is even, right after it if n is odd.
 *
 *   argv: client PORT | server, then step NAME | store NUMBER | never
 */
import diagnostics from 'node:diagnostics_channel'
import net from 'node:net'
import { transportOf } from '../../fastsockets/handle/transport.ts'
import { PatternWriter } from './pattern.ts'

export interface Told {
  readonly port?: number
  readonly transport?: string
  /** Stores since the connection was made; sent to the parent at the end. */
  readonly stores?: number
}

const [role, port, how, point] = process.argv.slice(2)
const tell = (message: Told): void => void process.send?.(message)
let stores = 0
let isCounting = false

function die(): void {
  process.kill(process.pid, 'SIGKILL')
}

if (how === 'step') {
  diagnostics.subscribe('fastsockets:step', step => {
    if (step === point) die()
  })
}
const store = Atomics.store as (words: Int32Array, index: number, value: number) => number
const fatal = how === 'store' ? Number(point) : Number.POSITIVE_INFINITY
Object.assign(Atomics, {
  store(words: Int32Array, index: number, value: number): number {
    const isFatal = isCounting && ++stores === fatal
    if (isFatal && stores % 2 === 0) die()
    const stored = store(words, index, value)
    // What is published now will have no doorbell.
    if (isFatal) die()
    return stored
  },
})

function stream(socket: net.Socket): void {
  isCounting = true
  socket.on('error', () => {})
  socket.resume()
  socket.on('close', () => tell({ stores }))
  new PatternWriter(socket).write()
}

if (role === 'server') {
  const server = net.createServer({ allowHalfOpen: true }, stream)
  server.listen(0, '127.0.0.1', () => tell({ port: (server.address() as net.AddressInfo).port }))
} else {
  const socket = net.connect({ port: Number(port), host: '127.0.0.1', allowHalfOpen: true }, () => {
    tell({ transport: transportOf(socket).transport })
    stream(socket)
  })
}
process.on('disconnect', () => process.exit())
