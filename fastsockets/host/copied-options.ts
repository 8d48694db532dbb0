/**
 * Avoids the cost of options copied by `{...options}` in Node 20. Programs spread options, and the constructor of
 * `net.Socket` does so, too.
 *
 * V8 11 gives such a copy a hidden class without transitions. Each socket makes new hidden classes, and thirty
 * property loads of its constructors miss their inline caches: about 6 us. After the copying site has seen options of
 * many shapes, it makes ordinary objects. Options that a program has spread are copied again with `Object.assign`,
 * whose result has an ordinary hidden class. See docs/decisions/0083-small-heaps.md.
 */
import net from 'node:net'
import { types } from 'node:util'
import { performance } from '../../nic/real-time.ts'

/** True for V8 11 of Node 20; later versions keep the transitions. */
const IS_FORGETFUL = process.versions.v8.startsWith('11.')
/** Calls of the constructor: more than V8 needs before it allocates type feedback for a function. */
const LESSONS = 48
/** V8 discards the feedback of functions that did not run for a while. */
const LASTS_MS = 30_000

const construct = net.Socket as unknown as (this: object, options: object) => void
let taughtMs = Number.NEGATIVE_INFINITY

/**
 * Lets the constructor of `net.Socket` copy options that V8 cannot copy by its fast path. The receiver is an ordinary
 * object without a handle, left to the collector: a real socket would change V8's estimate of a socket's size. Takes
 * 1.5 ms the first time, 0.3 ms later, and nothing within `LASTS_MS`.
 */
export function teachCopiedOptions(): void {
  if (!IS_FORGETFUL) return
  const nowMs = performance.now()
  if (nowMs - taughtMs < LASTS_MS) return
  taughtMs = nowMs
  try {
    for (let i = 0; i < LESSONS; i++) construct.call(Object.create(net.Socket.prototype), Object.create(null))
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
  if (!IS_FORGETFUL) return
  const [first] = args
  const list = Array.isArray(first) && first[ORDERED] === true ? (first as unknown[]) : args
  const [options] = list
  if (typeof options === 'object' && options !== null && isPlain(options))
    list[0] = Object.assign({}, options)
}

function isPlain(options: object): boolean {
  return Object.getPrototypeOf(options) === Object.prototype && !types.isProxy(options)
}
