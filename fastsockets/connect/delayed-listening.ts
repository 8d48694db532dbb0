/**
 * Delays 'listening' until relinked clients can reach the server, too: programs take the event as the sign to start
 * clients.
 */
import { clearTimeout, nextTick, setTimeout } from '../../nic/real-time.ts'
import type { FastServer } from './listeners.ts'

/** The most that 'listening' is delayed if the primary does not answer. */
const DELAY_MS_MAX = 1000

/** Servers whose 'listening' is due and delayed. */
const due = new Map<FastServer, () => void>()

/** Emits a delayed 'listening' at once: without the delay the program would have had it before the server closed. */
export function emitDelayed(server: FastServer): void {
  due.get(server)?.()
}

/** Delays 'listening' until the returned function is called. To be called before the event is due. */
export function delayListening(server: FastServer): () => void {
  const handle = server._handle
  const hadOwn = Object.hasOwn(server, 'emit')
  const emit = server.emit as (event: string | symbol, ...args: unknown[]) => boolean
  let isDelayed = true
  const delay = function (this: FastServer, event: string | symbol, ...args: unknown[]): boolean {
    // 'listening' must come before any connection that the primary sends during the delay.
    if (event === 'connection') emitDelayed(server)
    if (event !== 'listening' || !isDelayed) return emit.call(this, event, ...args)
    due.set(server, () => {
      release()
      emitDue()
    })
    return true
  } as typeof server.emit
  const release = (): void => {
    if (!isDelayed) return
    isDelayed = false
    clearTimeout(timer)
    if (server.emit === delay) {
      if (hadOwn) server.emit = emit as typeof server.emit
      else Reflect.deleteProperty(server, 'emit')
    }
    // As Node does: in nextTick, and not if the program has closed the server before.
    if (due.has(server)) nextTick(emitDue)
  }
  const emitDue = (): void => {
    if (due.delete(server) && server._handle === handle) server.emit('listening')
  }
  const timer = setTimeout(release, DELAY_MS_MAX)
  Object.defineProperty(server, 'emit', {
    value: delay,
    writable: true,
    enumerable: false,
    configurable: true,
  })
  return release
}
