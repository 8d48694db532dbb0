/**
 * Small writes of one turn leave as one message, unless the program has said `setNoDelay(true)`: they are held until the
 * program's callback is over. Only what finds window now is held, so it is out for certain afterwards.
 */
import { copyBytes } from '../../nic/index.ts'
import { nextTick, performance } from '../../nic/real-time.ts'

/** Larger writes gain nothing by being held. */
export const HELD_CHUNK_MAX = 4 * 1024
/** Of one stream. */
export const HELD_MAX = 32 * 1024
/** What a stream holds first; more if it writes more. Many sockets may be written to in one turn. */
const SIZE_MIN = 512
/** Memory that is kept for the next turn. */
const KEPT_BUFFERS_MAX = 16
/** How long a process that ends waits for room for what it holds. */
const EXIT_MS_MAX = 100

export interface Holder {
  flushHeld(): boolean
}

const kept: Buffer[] = []
const holders: Holder[] = []
/** Those who found no room in their turn, and will send with one of their next. */
const refused = new Set<Holder>()
let isExiting = false
let isWatchingExit = false

/** What one stream holds. */
export class HeldBytes {
  length = 0
  #bytes: Buffer | undefined
  #holder: Holder | undefined

  /** False if it must go at once: also if all of it would be longer than `messageMax`, what one message takes. */
  add(holder: Holder, chunk: Uint8Array, messageMax: number): boolean {
    const length = this.length + chunk.length
    if (isExiting || length > Math.min(HELD_MAX, messageMax)) return false
    // Nothing to send, and it does not have to wait for anything.
    if (chunk.length === 0) return true
    if (this.length === 0) {
      this.#holder = holder
      flushAfterwards(holder)
    }
    copyBytes(chunk, 0, this.#room(length), this.length, chunk.length)
    this.length = length
    return true
  }

  /** Memory for `needed` bytes in all, those that are there among them. */
  #room(needed: number): Buffer {
    const old = this.#bytes ?? kept.pop()
    if (old !== undefined && old.length >= needed) {
      this.#bytes = old
      return old
    }
    let size = old?.length ?? SIZE_MIN
    while (size < needed) size *= 2
    const bytes = Buffer.allocUnsafeSlow(size)
    if (this.length > 0) copyBytes(old as Buffer, 0, bytes, 0, this.length)
    this.#bytes = bytes
    return bytes
  }

  /** Copies all of it to where a message is being made, and holds nothing more. */
  moveTo(target: Uint8Array, at: number): void {
    copyBytes(this.#bytes as Buffer, 0, target, at, this.length)
    this.clear()
  }

  clear(): void {
    if (this.#bytes !== undefined && kept.length < KEPT_BUFFERS_MAX) kept.push(this.#bytes)
    if (refused.size > 0 && this.#holder !== undefined) refused.delete(this.#holder)
    this.#bytes = undefined
    this.#holder = undefined
    this.length = 0
  }
}

/** After the callback that runs now; at the latest when the process ends, by `process.exit()` for example. */
function flushAfterwards(holder: Holder): void {
  if (holders.push(holder) === 1) nextTick(flushAllHeld)
  if (isWatchingExit) return
  isWatchingExit = true
  // Before the listener that takes the rings away.
  process.prependListener('exit', () => {
    isExiting = true
    flushAtExit()
  })
}

/**
 * In the order of the writes, and before anything else that a socket sends: TCP keeps the order between sockets, too. What is
 * refused for want of room goes with the stream's next turn.
 */
export function flushAllHeld(): void {
  if (holders.length === 0) return
  for (let i = 0; i < holders.length; i++) {
    const holder = holders[i] as Holder
    if (!holder.flushHeld()) refused.add(holder)
  }
  holders.length = 0
}

/** The programs believe that it is out: a peer that reads makes room for it in no time. */
function flushAtExit(): void {
  const last = [...refused, ...holders.splice(0)]
  const untilMs = performance.now() + EXIT_MS_MAX
  for (const holder of last) while (!holder.flushHeld() && performance.now() < untilMs);
}
