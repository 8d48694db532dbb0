/**
 * What native streams are told: data and ends, in order, called from libuv with no JavaScript below.
 *
 * Node runs next ticks and microtasks after each call from native code into JavaScript, if no JavaScript is below it, as
 * there is none when libuv feeds a stream. Below a turn of ours there is some. Then the parser of http or http2 would say
 * 'data' and 'end' without anything in between that the program has put off. User code never runs here but above such a
 * call of native code. See docs/decisions/0016-native-feeds.md.
 */
import { scheduleFeeding } from './io-turns.ts'
import { drainTicks } from './node-internals.ts'

export interface FeedTarget {
  /** `undefined` is the end. */
  feedNow(bytes: Buffer | undefined): void
}

const targets: FeedTarget[] = []
const pieces: (Buffer | undefined)[] = []
/**
 * Streams that have nothing left but their end. They come first: the channels of a process are looked at one after the
 * other, and an end that one of them brought may be older than the data of another (decision 0016).
 */
const ends: FeedTarget[] = []

/** False where the event loop cannot be had this way: feed at once, then. `isAlone`: the target waits for nothing else. */
export function scheduleFeed(target: FeedTarget, bytes: Buffer | undefined, isAlone: boolean): boolean {
  if (!hasFeeds() && !scheduleFeeding(feedAll)) return false
  if (bytes === undefined && isAlone) ends.push(target)
  else {
    targets.push(target)
    pieces.push(bytes)
  }
  return true
}

/** Whether anything is scheduled: what comes now for another socket must not overtake it. */
export function hasFeeds(): boolean {
  return targets.length > 0 || ends.length > 0
}

function feedAll(): void {
  // What is scheduled meanwhile has the next turn, after what is left if a listener throws.
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
