/** Node's monotonic clock, which programs' fakes do not reach. Apart from real-time.ts, since programs without sockets do not need its module. */
import perfHooks from 'node:perf_hooks'

/** From its module, and its methods from the class: a program replaces the global, or methods of the object. */
const { performance: real } = perfHooks
const { now } = Object.getPrototypeOf(real) as typeof real

export const performance = {
  timeOrigin: real.timeOrigin,
  now: now.bind(real),
  nodeTiming: real.nodeTiming as typeof real.nodeTiming & { uvMetricsInfo: { events: number } },
}
