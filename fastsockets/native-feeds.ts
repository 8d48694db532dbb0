/**
 * What native streams are told: data and ends, in order, called from libuv with no JavaScript below.
 *
 * Node runs next ticks and microtasks after each call from native code into JavaScript, if no JavaScript is below it, as
 * there is none when libuv feeds a stream. Below a turn of ours there is some. Then the parser of http or http2 would say
 * 'data' and 'end' without anything in between that the program has put off. User code never runs here but above such a
 * call of native code. See docs/decisions/0016-native-feeds.md.
 */
import { type Idle, openIdle } from '../nic/index.ts'
import { drainTicks } from './node-internals.ts'

export interface FeedTarget {
  /** `undefined` is the end. */
  feedNow(bytes: Buffer | undefined): void
}

const targets: FeedTarget[] = []
const pieces: (Buffer | undefined)[] = []
let idle: Idle | undefined
let isOpened = false

/** False where the event loop cannot be had this way: feed at once, then. */
export function scheduleFeed(target: FeedTarget, bytes: Buffer | undefined): boolean {
  if (!isOpened) {
    isOpened = true
    idle = openIdle(feedAll)
  }
  if (idle === undefined) return false
  if (targets.length === 0) idle.start()
  targets.push(target)
  pieces.push(bytes)
  return true
}

function feedAll(): void {
  idle?.stop()
  // What is scheduled meanwhile has the next turn, after what is left if a listener throws.
  let left = targets.length
  try {
    while (left-- > 0) (targets.shift() as FeedTarget).feedNow(pieces.shift())
    drainTicks()
  } catch (error) {
    // Nothing may be thrown into libuv.
    setImmediate(() => {
      throw error
    })
  } finally {
    if (targets.length > 0) idle?.start()
  }
}
