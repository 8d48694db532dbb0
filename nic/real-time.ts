/**
 * Node's timers, and `Date.now`, as they were when this module was loaded. Programs, above all their tests, replace the
 * global ones by fakes that advance on demand. Fakes do not affect Node's own sockets and must not affect ours, so
 * all code that runs in a program's process imports its timers from here, and its clock from here or performance.ts.
 */
import promises from 'node:timers/promises'
import { makeHidden } from './own-resources.ts'

export const { clearTimeout, clearInterval, setImmediate, queueMicrotask } = globalThis
const { setTimeout: startTimeout, setInterval: startInterval } = globalThis
export const { setTimeout: sleep, setImmediate: nextTurn } = promises
export const nextTick: typeof process.nextTick = process.nextTick.bind(process)
export const dateNow = Date.now

const { hrtime } = process

/** Milliseconds of Node's monotonic clock, for programs that may end before they need performance.ts, whose module takes 0.8 ms to load. */
export function nowMs(): number {
  const [seconds, nanoseconds] = hrtime()
  return 1e3 * seconds + nanoseconds / 1e6
}

/** Our timers are hidden from hooks of the program. */
export const setTimeout = hidden(startTimeout)
export const setInterval = hidden(startInterval)

function hidden<T extends typeof startTimeout | typeof startInterval>(start: T): T {
  const startHidden = (...args: Parameters<T>): NodeJS.Timeout =>
    makeHidden(() => (start as (...args: Parameters<T>) => NodeJS.Timeout)(...args))
  return startHidden as T
}
