import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises'

const WATCHDOG_MS = 60_000
const PAUSE_MS = 10

/** Waits, turn by turn of the event loop, until `find` gives something other than undefined or false. */
export async function until<T>(what: string, find: () => T | undefined | false): Promise<T> {
  const deadlineMs = performance.now() + WATCHDOG_MS
  for (;;) {
    const found = find()
    if (found !== undefined && found !== false) return found
    if (performance.now() > deadlineMs) throw new Error(`watchdog: still waiting for ${what}`)
    await nextTurn()
  }
}

/** The outcome of `promise`, or an error once it has been waited for too long. */
export async function withWatchdog<T>(what: string, promise: Promise<T>, limitMs = WATCHDOG_MS): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const expired = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`watchdog: still waiting for ${what}`)), limitMs)
  })
  try {
    return await Promise.race([promise, expired])
  } finally {
    clearTimeout(timer)
  }
}

/** The same for what other processes do, or what must be asked for: pauses between two looks. */
export async function eventually<T>(
  what: string,
  find: () => T | undefined | false | Promise<T | undefined | false>,
): Promise<T> {
  const deadlineMs = performance.now() + WATCHDOG_MS
  for (;;) {
    const found = await find()
    if (found !== undefined && found !== false) return found
    if (performance.now() > deadlineMs) throw new Error(`watchdog: still waiting for ${what}`)
    await delay(PAUSE_MS)
  }
}
