/** A server says 'listening' when relinked clients can reach it, too: programs take it for the sign to send them. */
import { clearTimeout, nextTick, setTimeout } from '../../nic/real-time.ts'
import type { FastServer } from './listeners.ts'

/** If whoever it waits for does not answer, the server listens all the same. */
const HOLD_MS_MAX = 1000

/** Servers whose event is due and waits. */
const due = new Map<FastServer, () => void>()

/** A server that is closed meanwhile has listened: the program hears of it first, as it would have long ago. */
export function emitHeld(server: FastServer): void {
  due.get(server)?.()
}

/** From now on 'listening' waits; what is returned lets it go. To be called before the event is due. */
export function holdListening(server: FastServer): () => void {
  const handle = server._handle
  const hadOwn = Object.hasOwn(server, 'emit')
  const emit = server.emit as (event: string | symbol, ...args: unknown[]) => boolean
  let isHeld = true
  const hold = function (this: FastServer, event: string | symbol, ...args: unknown[]): boolean {
    // Whom the primary sends meanwhile comes after it all the same.
    if (event === 'connection') emitHeld(server)
    if (event !== 'listening' || !isHeld) return emit.call(this, event, ...args)
    due.set(server, () => {
      release()
      emitDue()
    })
    return true
  } as typeof server.emit
  const release = (): void => {
    if (!isHeld) return
    isHeld = false
    clearTimeout(timer)
    if (server.emit === hold) {
      if (hadOwn) server.emit = emit as typeof server.emit
      else Reflect.deleteProperty(server, 'emit')
    }
    // As Node does it: in a turn of its own, and not if the program has closed the server meanwhile.
    if (due.has(server)) nextTick(emitDue)
  }
  const emitDue = (): void => {
    if (due.delete(server) && server._handle === handle) server.emit('listening')
  }
  const timer = setTimeout(release, HOLD_MS_MAX)
  Object.defineProperty(server, 'emit', {
    value: hold,
    writable: true,
    enumerable: false,
    configurable: true,
  })
  return release
}
