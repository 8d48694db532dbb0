/**
 * Fast sockets that are passed to another process: by `send` of a child process or of `process`, or as its stdio. They
 * get a bridge (bridge.ts) just before Node takes their handle.
 */
import diagnostics from 'node:diagnostics_channel'
import { nextTick } from '../../nic/real-time.ts'
import { isAboutBootstrap } from '../bootstrap/primary-listener.ts'
import { fastOf } from '../handle/fast-handle.ts'
import type { FastSocket } from '../handle/fast-handle-contract.ts'
import type { HandleExchange } from '../handle/tls-sockets.ts'
import { bridge } from './bridge.ts'

type Send = (this: Sender, message: unknown, ...rest: unknown[]) => boolean

interface Sender {
  connected: boolean
  send?: Send
  emit(event: 'error', error: Error): boolean
}

interface SpawnOptions {
  readonly stdio?: unknown
}

interface Child extends Sender {
  spawn(options?: SpawnOptions): unknown
}

/** A worker may have gone before Node reports one of our listeners to it: the program must not see that error. */
const UNHEARD = { swallowErrors: true }

/** The socket cannot be sent to another process; it is unchanged. */
export class SendError extends Error {
  readonly code = 'ERR_FASTSOCKETS_SEND'

  constructor(cause: Error) {
    super(`this fast socket cannot be sent, ${cause.message}; a policy can keep its port on TCP`, { cause })
    this.name = 'SendError'
  }
}

/** Wraps `send` of this process and of its future children, and looks at the stdio that they inherit. */
export function watchSentSockets(exchange: HandleExchange): void {
  // In a worker thread `send` only throws, and Node marks it `disabled`.
  if (process.send !== undefined && !('disabled' in process.send)) {
    wrapSend(process as unknown as Sender, process.send as unknown as Send, exchange)
  }
  diagnostics.subscribe('child_process', message => {
    const { process: child } = message as { process: Child }
    const { spawn } = child
    Object.defineProperty(child, 'spawn', {
      configurable: true,
      value(this: Child, options?: SpawnOptions): unknown {
        Reflect.deleteProperty(child, 'spawn')
        bridgeStdio(options?.stdio, exchange)
        const result = spawn.call(this, options)
        if (child.send !== undefined) wrapSend(child, child.send, exchange)
        return result
      },
    })
  })
}

function wrapSend(target: Sender, send: Send, exchange: HandleExchange): void {
  const wrapped = function (this: Sender, message: unknown, ...rest: unknown[]): boolean {
    const [handle] = rest
    const mustBridge = this.connected && isFastSocket(handle)
    if (!mustBridge && isAboutBootstrap(message)) return send.call(this, message, handle, UNHEARD)
    if (!mustBridge) return send.call(this, message, ...rest)
    const callback = rest.find(argument => typeof argument === 'function')
    try {
      bridgeOrFail(handle, exchange)
    } catch (failure) {
      // As Node reports handles that cannot be sent.
      nextTick(() => (callback === undefined ? this.emit('error', failure as Error) : callback(failure)))
      return false
    }
    return send.call(this, message, ...rest)
  }
  Object.defineProperty(wrapped, 'name', { value: send.name })
  Object.defineProperty(wrapped, 'length', { value: send.length })
  Object.defineProperty(target, 'send', {
    value: wrapped,
    writable: true,
    enumerable: true,
    configurable: true,
  })
}

function isFastSocket(value: unknown): value is FastSocket {
  return (
    typeof value === 'object' &&
    value !== null &&
    fastOf((value as { _handle?: unknown })._handle) !== undefined
  )
}

function bridgeStdio(stdio: unknown, exchange: HandleExchange): void {
  if (!Array.isArray(stdio)) return
  for (const stream of stdio) if (isFastSocket(stream)) bridgeOrFail(stream, exchange)
}

function bridgeOrFail(socket: FastSocket, exchange: HandleExchange): void {
  try {
    bridge(socket, exchange)
  } catch (error) {
    throw new SendError(error as Error)
  }
}
