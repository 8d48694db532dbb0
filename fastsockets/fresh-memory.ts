/**
 * Memory that the program will own, and what a lot of it asks of the garbage collector of V8.
 *
 * What a receiver hands over counts against the limit at which V8 begins to mark the whole heap. A small heap has a small
 * limit, some 15 MB above its size, and one that is passed once is passed again every 50 MB: a stream of 64 KiB messages
 * then spends two thirds of its time marking (docs/decisions/0083-small-heaps.md).
 */
import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { isMainThread } from 'node:worker_threads'

const MEBI = 1 << 20
/** So much given out is a program that receives a lot; then, and each time again, the heap is looked at. */
const LOOK_EVERY_BYTES = 64 * MEBI
/** By how much a heap may grow before it is marked, if V8 would not let it by itself. */
const GROWTH_BYTES = 40 * MEBI
/** Other isolates of this process share the setting: no larger process is touched. */
const RESIDENT_MAX = 384 * MEBI
const WATCH_MS = 1000
/** `--heap-growing-percent`: 0 leaves it to V8. */
const BY_ITSELF = 0

let untilLook = LOOK_EVERY_BYTES
let percent = BY_ITSELF
let watch: NodeJS.Timeout | undefined
let looksSinceWatch = 0

/** Uninitialised, and not of a pool. */
export function allocateFresh(length: number): Buffer<ArrayBuffer> {
  untilLook -= length
  if (untilLook <= 0) look()
  return Buffer.allocUnsafeSlow(length)
}

function look(): void {
  untilLook = LOOK_EVERY_BYTES
  looksSinceWatch++
  if (!isMainThread || watch !== undefined) return
  adjust()
  if (percent === BY_ITSELF) return
  watch = setInterval(watchHeap, WATCH_MS)
  watch.unref()
}

/** Every second: the setting ends with the rush, or when the heap is not small any more. */
function watchHeap(): void {
  if (looksSinceWatch === 0) setGrowth(BY_ITSELF)
  else adjust()
  looksSinceWatch = 0
  if (percent !== BY_ITSELF) return
  clearInterval(watch)
  watch = undefined
}

function adjust(): void {
  const used = getHeapStatistics().used_heap_size
  const isSmall = used < GROWTH_BYTES && process.memoryUsage.rss() < RESIDENT_MAX
  setGrowth(isSmall ? Math.round((GROWTH_BYTES / used) * 100) : BY_ITSELF)
}

function setGrowth(wanted: number): void {
  if (wanted === percent) return
  percent = wanted
  setFlagsFromString(`--heap-growing-percent=${wanted}`)
}
