/**
 * `send` of `node:dgram` for datagrams that go past the kernel. Node's own looks the address up, and calls the handle two ticks later
 * (lib/dgram.js): that takes longer than all the rest of the way.
 *
 * Only the usual forms of arguments come this way, with an address in digits; for all else, errors included, Node's own method is called.
 */
import dgram from 'node:dgram'
import { define } from '../host/define.ts'
import { type UdpHandle, udpNotesOf } from './udp-notes.ts'

type Callback = (error: Error | null, size: number) => void
type Send = (
  this: dgram.Socket,
  message: unknown,
  offset?: unknown,
  length?: unknown,
  port?: unknown,
  address?: unknown,
  callback?: unknown,
) => void

/** What Node keeps of a socket, under `state symbol`. */
interface SocketState {
  readonly handle: UdpHandle | null
  /** Node 24 and later: asked before each send. */
  readonly sendBlockList?: unknown
}

let stateKey: symbol | undefined

export function sendDirectly(): void {
  const native = dgram.Socket.prototype.send as unknown as Send
  const send: Send = function (message, offset, length, port, address, callback) {
    const state = stateOf(this)
    const notes = state?.handle ? udpNotesOf(state.handle) : undefined
    const carrier = notes?.carrier
    if (notes === undefined || carrier === undefined || state?.sendBlockList !== undefined)
      return native.call(this, message, offset, length, port, address, callback)
    // Those that still look their address up go first.
    if (notes.slowSends === 0 && message instanceof Uint8Array) {
      if (notes.connectedTo !== undefined) {
        const isUsual = length === undefined && port === undefined && address === undefined
        if (isUsual && isCallback(offset) && carrier.trySend(message)) return finish(offset, message.length)
      } else if (address === undefined) {
        if (typeof offset === 'number' && typeof length === 'string' && isCallback(port))
          if (carrier.trySend(message, offset, length)) return finish(port, message.length)
      } else if (offset === 0 && length === message.length && isCallback(callback)) {
        if (typeof port === 'number' && typeof address === 'string')
          if (carrier.trySend(message, port, address)) return finish(callback, message.length)
      }
    }
    notes.slowSends++
    try {
      native.call(this, message, offset, length, port, address, callback)
    } catch (error) {
      notes.slowSends--
      throw error
    }
  }
  define(dgram.Socket.prototype, 'send', send as (...args: never[]) => unknown)
}

function stateOf(socket: dgram.Socket): SocketState | undefined {
  stateKey ??= Object.getOwnPropertySymbols(socket).find(({ description }) => description === 'state symbol')
  return stateKey && (socket as unknown as Record<symbol, SocketState>)[stateKey]
}

function isCallback(value: unknown): value is Callback | undefined {
  return value === undefined || typeof value === 'function'
}

function finish(callback: Callback | undefined, size: number): void {
  if (callback !== undefined) process.nextTick(callback, null, size)
}
