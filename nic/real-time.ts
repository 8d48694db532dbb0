/**
 * Time as it is. Programs, their tests above all, put timers and clocks in the place of Node's that run only when they say
 * so. Node's own sockets do not notice, and neither may what is beneath ours: whatever a program's process runs imports
 * these, which are the functions that were there when it was loaded.
 */
import perfHooks from 'node:perf_hooks'
import promises from 'node:timers/promises'
import { makeHidden } from './own-resources.ts'

export const { clearTimeout, clearInterval, setImmediate, queueMicrotask } = globalThis
const { setTimeout: startTimeout, setInterval: startInterval } = globalThis
export const { setTimeout: sleep, setImmediate: nextTurn } = promises
export const nextTick: typeof process.nextTick = process.nextTick.bind(process)
/** By its module: the program may have removed the global one. */
const { performance: real } = perfHooks
export const performance = { timeOrigin: real.timeOrigin, now: real.now.bind(real) }
export const dateNow = Date.now

/** Hooks of the program do not hear of our timers. */
export const setTimeout = hidden(startTimeout)
export const setInterval = hidden(startInterval)

function hidden<T extends typeof startTimeout | typeof startInterval>(start: T): T {
  const startHidden = (...args: Parameters<T>): NodeJS.Timeout =>
    makeHidden(() => (start as (...args: Parameters<T>) => NodeJS.Timeout)(...args))
  return startHidden as T
}
