/**
 * Removes names that processes have left in the rendezvous folder. Only with its lock: a socket that is being bound looks like
 * one of them. Strangers may have filled the folder, so a sweep goes on in later turns.
 */
import { type Dirent, opendirSync, unlinkSync } from 'node:fs'
import { type Clock, realClock, startInBackground } from '../clock.ts'
import { openLog } from '../log.ts'
import { AF_UNIX, ECONNREFUSED, SOCK_CLOEXEC, SOCK_DGRAM } from '../posix/constants.ts'
import type { Libc } from '../posix/libc.ts'
import { pathAddress } from '../posix/unix-socket.ts'
import { inFolder } from './in-folder.ts'
import { isOfLayout } from './names-layout.ts'

const log = openLog('fastsockets:rendezvous')

/** Pause between two sweeps of a thread, and the most entries that are looked at. */
const SWEEP_PAUSE_MS = 60_000
const ENTRIES_MAX = 4096
/** One turn sweeps for so long, and the next one that does follows after the second time. */
const SWEPT_AT_ONCE_MS = 2
const STEP_MS = 20

type Sweep = Generator<Dirent | undefined>

/** The sockets that this layout has; undefined for what else is there. */
export function* entriesIn(at: string): Sweep {
  const entries = opendirSync(at)
  try {
    for (let count = 0; count < ENTRIES_MAX; count++) {
      const entry = entries.readSync()
      if (entry === null) return
      yield entry.isSocket() && isOfLayout(entry.name) ? entry : undefined
    }
  } finally {
    entries.closeSync()
  }
}

export class Sweeper {
  readonly #clock: Clock
  #sweptAtMs = Number.NEGATIVE_INFINITY
  #underWay: Sweep | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Begins a sweep if the last one is long ago. `at`: a path to the folder, which is locked. */
  begin(libc: Libc, at: string): void {
    const nowMs = this.#clock.now()
    if (this.#underWay !== undefined || nowMs - this.#sweptAtMs < SWEEP_PAUSE_MS) return
    this.#sweptAtMs = nowMs
    this.#underWay = entriesIn(at)
    this.#sweepSome(libc, at, this.#underWay)
  }

  #sweepSome(libc: Libc, at: string, sweep: Sweep): void {
    const untilMs = this.#clock.now() + SWEPT_AT_ONCE_MS
    let hasMore = false
    try {
      while (!hasMore) {
        const { done, value: entry } = sweep.next()
        if (done) return
        if (entry !== undefined && isStale(libc, `${at}/${entry.name}`)) remove(`${at}/${entry.name}`)
        hasMore = this.#clock.now() >= untilMs
      }
    } finally {
      if (hasMore) startInBackground(this.#clock, () => this.#goOn(sweep), STEP_MS)
      else this.#end(sweep)
    }
  }

  #goOn(sweep: Sweep): void {
    const outcome = inFolder(
      (at, libc) => (libc === undefined ? this.#end(sweep) : this.#sweepSome(libc, at, sweep)),
      1,
    )
    if (typeof outcome === 'string' && this.#underWay === sweep) this.#end(sweep)
  }

  #end(sweep: Sweep): void {
    this.#underWay = undefined
    sweep.return(undefined)
  }
}

/** Of this thread. */
export const ownSweeper = new Sweeper(realClock)

/**
 * Whether no process has the socket any more. A datagram socket asks: a stream listener answers EPROTOTYPE, and never
 * learns of it.
 */
export function isStale(libc: Libc, path: string): boolean {
  const fd = libc.socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)
  if (fd < 0) return false
  const address = pathAddress(path)
  const isRefused = libc.connect(fd, address, address.length) < 0 && libc.errno() === ECONNREFUSED
  libc.close(fd)
  return isRefused
}

export function remove(path: string): void {
  try {
    unlinkSync(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') log('%s', (error as Error).message)
  }
}
