/**
 * Fast sockets that are passed to another process: by `send` of a child process or of `process`, or as its stdio. They
 * get a bridge (bridge.ts) just before Node takes their handle.
 */
import diagnostics from 'node:diagnostics_channel'
import { nextTick } from '../../nic/real-time.ts'
import { isAboutBootstrap } from '../bootstrap/primary-messages.ts'
import { sending } from './entries.ts'

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

/** Wraps `send` of this process and of its future children, and looks at the stdio that they inherit. */
export function watchSentSockets(): void {
  // In a worker thread `send` only throws, and Node marks it `disabled`.
  if (process.send !== undefined && !('disabled' in process.send)) {
    wrapSend(process as unknown as Sender, process.send as unknown as Send)
  }
  diagnostics.subscribe('child_process', message => {
    const { process: child } = message as { process: Child }
    const { spawn } = child
    Object.defineProperty(child, 'spawn', {
      configurable: true,
      value(this: Child, options?: SpawnOptions): unknown {
        Reflect.deleteProperty(child, 'spawn')
        bridgeStdio(options?.stdio)
        const result = spawn.call(this, options)
        if (child.send !== undefined) wrapSend(child, child.send)
        return result
      },
    })
  })
}

function wrapSend(target: Sender, send: Send): void {
  const wrapped = function (this: Sender, message: unknown, ...rest: unknown[]): boolean {
    const [handle] = rest
    if (!this.connected || !sending.bridges?.isFast(handle)) {
      return isAboutBootstrap(message)
        ? send.call(this, message, handle, UNHEARD)
        : send.call(this, message, ...rest)
    }
    const callback = rest.find(argument => typeof argument === 'function')
    try {
      sending.bridges.bridge(handle)
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

function bridgeStdio(stdio: unknown): void {
  if (!Array.isArray(stdio)) return
  for (const stream of stdio) if (sending.bridges?.isFast(stream)) sending.bridges.bridge(stream)
}
