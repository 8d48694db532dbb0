import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises'

const WATCHDOG_MS = 60_000
/** Between two looks, which may be questions to other processes: at first, and once it takes long. */
const PAUSE_MS = 10
const LONG_MS = 500
const LONG_PAUSE_MS = 40
/** What this process does by itself is over sooner; for other processes and for timers it waits without keeping a core busy. */
const TURNS_MS = 20
const SHORT_PAUSE_MS = 1

/**
 * Waits until `find` gives something other than undefined or false: looks in every turn of the event loop, and after `turnsMs` once a
 * millisecond.
 */
export async function until<T>(
  what: string,
  find: () => T | undefined | false,
  turnsMs = TURNS_MS,
): Promise<T> {
  const beginMs = performance.now()
  for (;;) {
    const found = find()
    if (found !== undefined && found !== false) return found
    const waitedMs = performance.now() - beginMs
    if (waitedMs > WATCHDOG_MS) throw new Error(`watchdog: still waiting for ${what}`)
    if (waitedMs < turnsMs) await nextTurn()
    else await delay(SHORT_PAUSE_MS)
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
  const beginMs = performance.now()
  for (;;) {
    const found = await find()
    if (found !== undefined && found !== false) return found
    const waitedMs = performance.now() - beginMs
    if (waitedMs > WATCHDOG_MS) throw new Error(`watchdog: still waiting for ${what}`)
    await delay(waitedMs < LONG_MS ? PAUSE_MS : LONG_PAUSE_MS)
  }
}
