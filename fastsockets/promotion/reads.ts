/**
 * What sockets on TCP read, for programs that mostly read. Node counts the bytes, and libuv how often it had something to read; both are
 * looked at now and then, less often the longer nothing comes, and never without an open socket.
 */
import { createRequire } from 'node:module'
import net from 'node:net'
import { clearTimeout, nowMs, setTimeout } from '../../nic/real-time.ts'
import { inTurns } from '../host/in-turns.ts'
import { tryLoad } from '../host/try-load.ts'
import { isConnection } from './connections.ts'

const DELAY_MS = 100
const DELAY_MAX_MS = 3200
/** While little comes, which is no reason to move soon. */
const LITTLE_DELAY_MAX_MS = 400
/** Of a process, in a millisecond. */
const LITTLE_BYTES = 16 * 1024
const LITTLE_READS = 1
/** A look at very many sockets takes its time: the pause after it is so many times as long. */
const PAUSES_PER_LOOK = 50

const { _getActiveHandles: activeHandles } = process as unknown as { _getActiveHandles?: () => unknown[] }

/** What keeps this process alive: connections (`openSockets`), and whatever else. */
export function openHandles(): unknown[] {
  return activeHandles?.call(process) ?? []
}

/** The connections among them. */
export function openSockets(handles: readonly unknown[] = openHandles()): net.Socket[] {
  return handles.filter((one): one is net.Socket => one instanceof net.Socket && isConnection(one))
}

const require = createRequire(import.meta.url)

/**
 * What libuv's event loop has found by poll, of whatever kind. Its module is loaded late (nic/real-time.ts): undefined if it cannot be
 * read now.
 */
function eventCount(): number | undefined {
  const loaded = tryLoad(
    () => require('../../nic/performance.ts') as typeof import('../../nic/performance.ts'),
  )
  return loaded?.performance.nodeTiming.uvMetricsInfo.events
}

/** Reports what is read over TCP, from each `start` on until no socket is open. */
export class ReadWatch {
  readonly #onRead: ((bytes: number, times: number) => void) | undefined
  readonly #onLook: (sockets: net.Socket[]) => void
  #timer: NodeJS.Timeout | undefined
  #delayMs = DELAY_MS
  #seen = 0
  /** Undefined until the first look. */
  #events: number | undefined

  /** `times`: at most so many reads have brought these bytes. `onLook` gets the open sockets at each look, part by part. */
  constructor(
    onRead: ((bytes: number, times: number) => void) | undefined,
    onLook: (sockets: net.Socket[]) => void = () => {},
  ) {
    this.#onRead = onRead
    this.#onLook = onLook
  }

  /** Does nothing while the watch goes on. */
  start(): void {
    if (this.#timer !== undefined) return
    this.#delayMs = DELAY_MS
    this.#events = undefined
    this.#timer = setTimeout(this.#look, DELAY_MS).unref()
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  readonly #look = (): void => {
    const timer = this.#timer
    let [total, count, lookMs] = [0, 0, 0]
    inTurns(
      openHandles(),
      part => {
        const startMs = nowMs()
        const sockets = openSockets(part)
        count += sockets.length
        for (const { bytesRead } of sockets) total += bytesRead
        this.#onLook(sockets)
        lookMs += nowMs() - startMs
      },
      () => {
        if (this.#timer === timer) this.#handleLooked(total, count, lookMs)
      },
    )
  }

  #handleLooked(total: number, count: number, lookMs: number): void {
    const read = Math.max(0, total - this.#seen)
    const events = eventCount()
    const times = events === undefined ? 0 : Math.min(read, events - (this.#events ?? events))
    this.#seen = total
    this.#events = events
    if (read > 0) this.#onRead?.(read, times)
    const isLittle = read <= LITTLE_BYTES * this.#delayMs && times <= LITTLE_READS * this.#delayMs
    const maxMs = read > 0 ? LITTLE_DELAY_MAX_MS : DELAY_MAX_MS
    this.#delayMs = isLittle ? Math.min(this.#delayMs * 2, maxMs) : DELAY_MS
    const pauseMs = Math.max(this.#delayMs, PAUSES_PER_LOOK * lookMs)
    this.#timer = count > 0 ? setTimeout(this.#look, pauseMs).unref() : undefined
  }
}
