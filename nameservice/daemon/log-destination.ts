/**
 * Standard output, as a daemon must take it: a disk that is full, or a reader that does not read, costs lines of the log
 * and nothing else. Neither process.stdout nor pino's own destination is like that: the one waits for a pipe's reader,
 * the other waits for ever at the end.
 */
import { constants, fstatSync, openSync, write } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'

/** What may wait to be written; beyond it lines are dropped. */
const WAITING_MAX = 1024 * 1024
const RETRY_MS = 50
/** How long the last lines may take. */
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

  /** Resolves when everything is written, or could not be in time. */
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
      // What cannot be written is given up; later lines may have better luck.
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

/** A pipe of our own to the same reader, which does not make us wait; whoever shares ours may not expect that of it. */
function openStdout(): number {
  try {
    if (!fstatSync(STDOUT).isFIFO()) return STDOUT
    return openSync('/proc/self/fd/1', constants.O_WRONLY | constants.O_NONBLOCK)
  } catch {
    return STDOUT
  }
}
