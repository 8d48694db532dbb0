/**
 * Fast sockets that are passed to another process: by `send` of a child process or of `process`, or as its stdio. They
 * get a bridge (bridge.ts) just before Node takes their handle. With a TCP connection below, they first return to it (demotion), which
 * takes an answer of the peer: a `send` then waits for it, and all later ones of the same channel behind it. Loaded with the first child or `send`.
 */
import { clearTimeout, nextTick, setTimeout } from '../../nic/real-time.ts'
import { isAboutBootstrap } from '../bootstrap/primary-messages.ts'
import { noteShared } from '../datagram/watching.ts'
import type { FastSocket } from '../handle/fast-handle-contract.ts'
import { sending } from './entries.ts'

export type Send = (this: Sender, message: unknown, ...rest: unknown[]) => boolean

export interface Sender {
  connected: boolean
  send?: Send
  emit(event: 'error', error: Error): boolean
}

interface SpawnOptions {
  readonly stdio?: unknown
}

export interface Child extends Sender {
  spawn(options?: SpawnOptions): unknown
}

/** A worker may have gone before Node reports one of our listeners to it: the program must not see that error. */
const UNHEARD = { swallowErrors: true }

/** Looks at the stdio that a child process inherits, and wraps its `send`. */
export function watchChild(child: Child): void {
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
}

/** Longest wait for a socket to return to TCP; then it gets a bridge. */
const RETURN_MS = 100

type Arguments = [message: unknown, ...rest: unknown[]]

/** By channel: what was sent since a socket began to return to TCP. */
const waiting = new WeakMap<Sender, Arguments[]>()

/** Sends once `socket` is back on TCP, or cannot be; then all that has waited behind it. */
function sendLater(target: Sender, socket: FastSocket, sendFirst: () => void): true {
  const behind: Arguments[] = []
  waiting.set(target, behind)
  let isSent = false
  const proceed = (): void => {
    if (isSent) return
    isSent = true
    clearTimeout(timer)
    waiting.delete(target)
    sendFirst()
    for (const args of behind) target.send?.(...args)
  }
  const timer = setTimeout(proceed, RETURN_MS)
  void sending.bridges?.returnToTcp(socket).then(proceed)
  return true
}

export function wrapSend(target: Sender, send: Send): void {
  const wrapped = function (this: Sender, ...args: Arguments): boolean {
    const [, handle] = args
    if (typeof handle === 'object' && handle !== null) noteShared(handle)
    const behind = waiting.get(this)
    if (behind !== undefined) return behind.push(args) > 0
    const { bridges } = sending
    const keepsOpen = (args[2] as { keepOpen?: boolean } | undefined)?.keepOpen === true
    if (this.connected && !keepsOpen && bridges?.isFast(handle) === true && bridges.mayReturn(handle))
      return sendLater(this, handle, () => sendNow.apply(this, args))
    return sendNow.apply(this, args)
  }
  const sendNow = function (this: Sender, message: unknown, ...rest: unknown[]): boolean {
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
