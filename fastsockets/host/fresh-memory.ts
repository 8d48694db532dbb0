/**
 * Memory that the program will own, and what a lot of it asks of the garbage collector of V8.
 *
 * What a receiver hands over counts against the limit at which V8 begins to mark the whole heap. A small heap has a small
 * limit, some 15 MB above its size, and one that is passed once is passed again every 50 MB: a stream of 64 KiB messages
 * then spends two thirds of its time marking (docs/decisions/0083-small-heaps.md).
 */
import { getHeapStatistics } from 'node:v8'
import { clearInterval, performance, setInterval } from '../../nic/real-time.ts'
import { mayChange, setOption } from './v8-options.ts'

const OPTION = '--heap-growing-percent'
const MEBI = 1 << 20
/** So much given out within a second is a rush: then, and each time again, the heap is looked at. */
const RUSH_BYTES = 64 * MEBI
const RUSH_MS = 1000
/** Heaps below these sizes may grow by so many percent before they are marked; V8 has some 80, and 8 MB at least. */
const SMALLEST_HEAP = 10 * MEBI
const SMALLEST_PERCENT = 500
const SMALL_HEAP = 32 * MEBI
const SMALL_PERCENT = 300
/** Other isolates of this process share the setting: no larger process is touched. */
const RESIDENT_MAX = 384 * MEBI
/** Leaves it to V8. */
const BY_ITSELF = 0

const isAllowed = mayChange(OPTION)
let left = RUSH_BYTES
let lookedAtMs = 0
let percent = BY_ITSELF
let watch: NodeJS.Timeout | undefined

/** Uninitialised, and not of a pool. */
export function allocateFresh(length: number): Buffer<ArrayBuffer> {
  noteFresh(length)
  return Buffer.allocUnsafeSlow(length)
}

/** So many received bytes get memory anew, here or by native code. */
export function noteFresh(length: number): void {
  left -= length
  if (left <= 0) look()
}

function look(): void {
  left = RUSH_BYTES
  const nowMs = performance.now()
  const isRush = nowMs - lookedAtMs < RUSH_MS
  lookedAtMs = nowMs
  if (isAllowed && isRush) setGrowth(growthFor(getHeapStatistics().used_heap_size))
}

/** The rush may be over, or the heap not small any more. */
function handleWatch(): void {
  const isRush = performance.now() - lookedAtMs < RUSH_MS
  setGrowth(isRush ? growthFor(getHeapStatistics().used_heap_size) : BY_ITSELF)
}

function growthFor(used: number): number {
  if (used > SMALL_HEAP || process.memoryUsage.rss() > RESIDENT_MAX) return BY_ITSELF
  return used < SMALLEST_HEAP ? SMALLEST_PERCENT : SMALL_PERCENT
}

function setGrowth(wanted: number): void {
  if (wanted === percent) return
  percent = wanted
  setOption(OPTION, wanted)
  if (wanted === BY_ITSELF) {
    clearInterval(watch)
    watch = undefined
  } else {
    watch ??= setInterval(handleWatch, RUSH_MS).unref()
  }
}
