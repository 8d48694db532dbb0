/**
 * Standard output for a daemon: a full disk, or a reader that does not read, costs log lines and nothing else.
 * process.stdout blocks until a pipe's reader reads; pino's own destination may wait for ever at the end.
 */
import { constants, fstatSync, openSync, write } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'

/** Most characters that wait to be written; further lines are dropped. */
const WAITING_MAX = 1024 * 1024
const RETRY_MS = 50
/** Longest time to write the last lines. */
const FLUSH_MS = 500
const STDOUT = 1

const writeSome = promisify(write)

export class LogDestination {
  readonly #fd: number
  #waiting: string[] = []
  #waitingLength = 0
  #writing: Promise<void> | undefined

  constructor(fd: number = openStdout()) {
    this.#fd = fd
  }

  write(line: string): void {
    if (this.#waitingLength + line.length > WAITING_MAX) return
    this.#waiting.push(line)
    this.#waitingLength += line.length
    this.#writing ??= this.#writeAll()
  }

  /** Resolves when all lines are written, or when the time is up. */
  async flush(): Promise<void> {
    const written = new AbortController()
    const late = delay(FLUSH_MS, undefined, { signal: written.signal }).catch(() => {})
    await Promise.race([this.#writing, late])
    written.abort()
    this.#waiting = []
  }

  async #writeAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const bytes = Buffer.from(this.#waiting.join(''))
      this.#waiting = []
      this.#waitingLength = 0
      // A failed write drops its lines; later lines are tried again.
      await this.#writeWhole(bytes).catch(() => {})
    }
    this.#writing = undefined
  }

  async #writeWhole(bytes: Buffer): Promise<void> {
    for (let written = 0; written < bytes.length; ) {
      try {
        written += (await writeSome(this.#fd, bytes, written)).bytesWritten
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error
        await delay(RETRY_MS, undefined, { ref: false })
      }
    }
  }
}

/**
 * A description of our own of the same pipe, with O_NONBLOCK. Other processes share the inherited one, and rely on
 * it to block.
 */
function openStdout(): number {
  try {
    if (!fstatSync(STDOUT).isFIFO()) return STDOUT
    return openSync('/proc/self/fd/1', constants.O_WRONLY | constants.O_NONBLOCK)
  } catch {
    return STDOUT
  }
}
