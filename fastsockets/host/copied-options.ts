/**
 * What options cost that are copied by `{...options}`: those of a program that spreads them, and those of each `net.Socket`,
 * whose constructor copies them and adds to the copy.
 *
 * V8 of Node 20 gives such a copy a hidden class that remembers nothing: each socket makes new ones, and thirty loads of
 * its constructors miss their caches, some 6 us in all. Once the place where they are copied has seen that options may
 * be of any shape, it copies them in the ordinary way. What a program has spread we copy once more, in a way that has
 * always been ordinary. See docs/decisions/0083-small-heaps.md.
 */
import net from 'node:net'
import { types } from 'node:util'
import { performance } from '../../nic/real-time.ts'

/** Later ones remember. */
const IS_FORGETFUL = process.versions.v8.startsWith('11.')
/** So often must a function run until V8 notes what it sees there, and then some. */
const LESSONS = 48
/** V8 forgets what it noted of functions that did not run for a while. */
const LASTS_MS = 30_000

const construct = net.Socket as unknown as (this: object, options: object) => void
let taughtMs = Number.NEGATIVE_INFINITY

/**
 * Has options copied whose shape cannot be copied fast. What they are for is no socket, of which V8 would learn how large
 * sockets are; it has no handle, and is garbage. Takes 1.5 ms the first time, and 0.3 ms later; nothing within `LASTS_MS`.
 */
export function teachCopiedOptions(): void {
  if (!IS_FORGETFUL) return
  const nowMs = performance.now()
  if (nowMs - taughtMs < LASTS_MS) return
  taughtMs = nowMs
  try {
    for (let i = 0; i < LESSONS; i++) construct.call(Object.create(net.Socket.prototype), Object.create(null))
  } catch {
    // A program has put something else in the place of Node's constructor, or of what that calls.
  }
}

/** By this Node marks the arguments that it has put in order; another list is somebody else's. */
const [ORDERED] = Object.getOwnPropertySymbols(
  (net as unknown as { _normalizeArgs?: (args: unknown[]) => object })._normalizeArgs?.([{}]) ?? {},
) as [keyof unknown[]]

/**
 * Puts a copy in place of the options that `net.Socket.prototype.connect` was called with, in `args` or in the list that
 * Node has put in order. A spread object's loads miss their caches, ours and Node's: up to 8 us of a connection to a server
 * that is not relinked. What is not a plain object stays as it is. The copy has the enumerable members, as those have that
 * Node makes for its constructors.
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
