/**
 * What only Node 20 needs; later versions do not load this file.
 *
 * Programs copy options by `{...options}`, and so does the constructor of `net.Socket`. V8 11 gives such a copy a hidden
 * class of its own, with which thirty property loads of the constructors take 6 us longer: half the rate of
 * connections. A copy by `Object.assign` is an ordinary object. The constructor's copying becomes ordinary after options that V8
 * cannot copy by its fast path.
 */
import net from 'node:net'
import { types } from 'node:util'
import { performance } from '../../nic/performance.ts'

/** Calls of the constructor: more than V8 needs before it allocates type feedback for a function. */
const CALLS = 48
/** V8 discards the feedback of functions that did not run for a while. */
const LASTS_MS = 30_000

const construct = net.Socket as unknown as (this: object, options: object) => void
let taughtMs = Number.NEGATIVE_INFINITY

/**
 * Lets the constructor of `net.Socket` copy options that V8 cannot copy by its fast path. The receiver is an ordinary
 * object without a handle, left to the collector: a real socket would change V8's estimate of a socket's size. Takes
 * 1.5 ms the first time, 0.3 ms later, and nothing within `LASTS_MS`.
 */
export function warmUpOptionCopies(): void {
  const nowMs = performance.now()
  if (nowMs - taughtMs < LASTS_MS) return
  taughtMs = nowMs
  try {
    for (let i = 0; i < CALLS; i++) construct.call(Object.create(net.Socket.prototype), Object.create(null))
  } catch {
    // The program has replaced Node's constructor or a function that the constructor calls.
  }
}

/** The symbol by which net.js marks a list of arguments that `_normalizeArgs` has returned. */
const [ORDERED] = Object.getOwnPropertySymbols(
  (net as unknown as { _normalizeArgs?: (args: unknown[]) => object })._normalizeArgs?.([{}]) ?? {},
) as [keyof unknown[]]

/**
 * Replaces the options of a `net.Socket.prototype.connect` call by a copy, in `args` or in the list that
 * `_normalizeArgs` returned. Property loads from a spread object miss the inline caches: up to 8 us of a connection
 * to a server that is not relinked. Options that are not a plain object stay. The copy has the enumerable members, as
 * has Node's own copy for its constructors.
 */
export function copyOptions(args: unknown[]): void {
  const [first] = args
  const list = Array.isArray(first) && first[ORDERED] === true ? (first as unknown[]) : args
  const [options] = list
  if (typeof options === 'object' && options !== null && isPlain(options))
    list[0] = Object.assign({}, options)
}

function isPlain(options: object): boolean {
  return Object.getPrototypeOf(options) === Object.prototype && !types.isProxy(options)
}
