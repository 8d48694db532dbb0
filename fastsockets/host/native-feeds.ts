/**
 * Feeds data and ends to native streams, in order, from a libuv callback without JavaScript below it on the stack.
 *
 * Node runs next ticks and microtasks after a call from native code into JavaScript only if no JavaScript is below
 * that call. A turn of the poller is JavaScript. If the turn fed the streams, the parsers of http and http2 would
 * emit 'data' and 'end' without the program's ticks between them. User code runs here only above a native call into a
 * stream. See docs/decisions/0016-native-feeds.md.
 */
import { scheduleFeeding } from './io-turns.ts'
import { drainTicks } from './node-internals.ts'

export interface FeedTarget {
  /** `undefined` stands for the end of the stream. */
  feedNow(bytes: Buffer | undefined): void
}

const targets: FeedTarget[] = []
const pieces: (Buffer | undefined)[] = []
/**
 * Streams of which only the end is left to feed. They are fed first: the poller reads one channel after another, so
 * an end from one channel may be older than data from another (decision 0016).
 */
const ends: FeedTarget[] = []

/** False without an I/O phase: the caller then feeds at once. `isAlone`: nothing else is scheduled for `target`. */
export function scheduleFeed(target: FeedTarget, bytes: Buffer | undefined, isAlone: boolean): boolean {
  if (!hasFeeds() && !scheduleFeeding(feedAll)) return false
  if (bytes === undefined && isAlone) ends.push(target)
  else {
    targets.push(target)
    pieces.push(bytes)
  }
  return true
}

/** True if any feed is scheduled. Later data of other sockets must be scheduled behind it, to keep the order. */
export function hasFeeds(): boolean {
  return targets.length > 0 || ends.length > 0
}

function feedAll(): void {
  // Feeds that listeners schedule now run in the next call, behind those that a throwing listener leaves over.
  let endsLeft = ends.length
  let left = targets.length
  try {
    while (endsLeft-- > 0) (ends.shift() as FeedTarget).feedNow(undefined)
    while (left-- > 0) (targets.shift() as FeedTarget).feedNow(pieces.shift())
    drainTicks()
  } finally {
    if (hasFeeds()) scheduleFeeding(feedAll)
  }
}
