/**
 * Sees each new socket of `node:dgram`, which Node publishes on a diagnostics channel. A program without one loads neither
 * `node:dgram` for us nor what wraps its handles (udp-handles.ts).
 */
import diagnostics from 'node:diagnostics_channel'
import { createRequire } from 'node:module'
import { tryLoad } from '../host/try-load.ts'

const require = createRequire(import.meta.url)
/** udp-handles.ts */
let handles: { watchSocket(socket: object): void; keepSocketWithKernel(socket: object): void } | undefined

/** Sockets that were made since this thread is relinked. */
export const seenSockets = new WeakSet<object>()

export function watchDatagrams(): void {
  diagnostics.subscribe('udp.socket', message => {
    const { socket } = message as { socket: object }
    seenSockets.add(socket)
    handles ??= tryLoad(() => require('./udp-handles.ts') as NonNullable<typeof handles>)
    handles?.watchSocket(socket)
  })
}

/** Another process gets the descriptor, and may read from it, too. */
export function noteShared(socket: object): void {
  if (seenSockets.has(socket)) handles?.keepSocketWithKernel(socket)
}
