/**
 * Allocates received data that the program will own, and lets a small heap grow while there is much of such data.
 *
 * Array buffers count towards the limit at which V8 begins to mark the whole heap. The limit of a small heap is about
 * 15 MB above its size. A stream of 64 KiB messages reaches it every 50 MB, and then spends two thirds of its time in
 * marking (docs/decisions/0083-small-heaps.md).
 */
import { getHeapStatistics } from 'node:v8'
import { clearInterval, performance, setInterval } from '../../nic/real-time.ts'
import { mayChange, setOption } from './v8-options.ts'

const OPTION = '--heap-growing-percent'
const MEBI = 1 << 20
/** If this much is allocated within `RUSH_MS`, there is a rush: the limit is set by the size of the heap. */
const RUSH_BYTES = 64 * MEBI
const RUSH_MS = 1000
/**
 * Heaps below these sizes may grow by this percentage before V8 marks them. V8's default: about 80, and at least 8
 * MB.
 */
const SMALLEST_HEAP = 10 * MEBI
const SMALLEST_PERCENT = 500
const SMALL_HEAP = 32 * MEBI
const SMALL_PERCENT = 300
/** All isolates of a process share the setting: a process with more resident memory keeps V8's default. */
const RESIDENT_MAX = 384 * MEBI
/** The value by which V8 decides itself. */
const BY_ITSELF = 0

const isAllowed = mayChange(OPTION)
let left = RUSH_BYTES
let lookedAtMs = 0
let percent = BY_ITSELF
let watch: NodeJS.Timeout | undefined

/** Uninitialised memory that is not part of a pool: the caller becomes its only owner. */
export function allocateFresh(length: number): Buffer<ArrayBuffer> {
  noteFresh(length)
  return Buffer.allocUnsafeSlow(length)
}

/** Counts `length` bytes of new memory for received data, allocated here or by native code. */
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

/** Adapts the limit to the size of the heap; restores V8's default after the rush. */
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
