/**
 * Shared mappings whose addresses stay valid after they are unmapped.
 *
 * Access through a typed array over unmapped memory kills the process, and the garbage collector decides when the last
 * array goes. So each address range is reserved once and never returned to the kernel. Mapping a segment replaces the
 * pages of the range (`MAP_FIXED`). Releasing the segment replaces them by untouched anonymous memory, and a pool keeps
 * the range for the next segment of its size. The shared memory is freed at once; only address space stays, as much as
 * the largest number of segments that were mapped together. Each thread has its own pools. When a worker ends, the
 * thread that started it unmaps the worker's ranges (thread-ranges.ts).
 */
import { isMainThread } from 'node:worker_threads'
import { NicError } from '../errors.ts'
import { noteRange } from '../threads/thread-ranges.ts'
import { ownRow } from '../threads/thread-table.ts'
import { undisturbed } from '../threads/undisturbed.ts'
import {
  MAP_ANONYMOUS,
  MAP_FIXED,
  MAP_FIXED_NOREPLACE,
  MAP_NORESERVE,
  MAP_PRIVATE,
  MAP_SHARED,
  PROT_READ,
  PROT_WRITE,
} from './constants.ts'
import { type Libc, requireLibc, systemError } from './libc.ts'

const MAP_FAILED = 0xffff_ffff_ffff_ffffn
const READ_WRITE = PROT_READ | PROT_WRITE
/** The smallest page size of Linux. */
const RANGE_LENGTH_MIN = 4096
/** The longest ArrayBuffer of Node 20. A request for a longer one ends the process there. */
const RANGE_LENGTH_MAX = 2 ** 32
const IDLE = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE

export interface Mapping {
  readonly address: bigint
  readonly length: number
  /**
   * Over the mapped bytes, or over their beginning (`viewLength`). After `unmapShared` it reads as zeros or as another
   * segment: the owner drops every view before.
   */
  readonly memory: ArrayBuffer
}

const idleRanges = new Map<number, Mapping[]>()
const mapped = new Set<Mapping>()
/** Ranges whose last ArrayBuffer was collected. */
const bareRanges = new Map<number, bigint[]>()
const collectable = new Set<Collectable>()
/**
 * Undefined if the program has removed the global class: collectable ranges then stay mapped until the process ends.
 */
const collected =
  typeof FinalizationRegistry === 'function' ? new FinalizationRegistry(handleCollected) : undefined

function handleCollected(range: Collectable): void {
  collectable.delete(range)
  const { address, length, onCollected } = range
  if (makeIdle(requireLibc(), address, length)) pushTo(bareRanges, length, address)
  onCollected()
}

interface Collectable {
  readonly address: bigint
  readonly length: number
  readonly onCollected: () => void
}

// No other thread unmaps the ranges of a worker without a row (thread-table.ts): the worker releases its segments if it
// ends without being terminated.
if (!isMainThread && ownRow < 0) {
  process.on('exit', () => {
    for (const mapping of mapped) unmapShared(requireLibc(), mapping)
    for (const { address, length } of collectable) makeIdle(requireLibc(), address, length)
  })
}

/**
 * Maps the first `length` bytes of `fd`. The caller may close the descriptor afterwards. Unless `mayWrite`, a write
 * to the memory kills the process.
 * @param rangeLength length of the address range; mappings of different lengths share a pool if it is equal
 * @param viewLength length of `memory`; all mappings with one `rangeLength` must have the same
 */
export function mapShared(
  libc: Libc,
  fd: number,
  length: number,
  rangeLength: number = length,
  mayWrite = true,
  viewLength: number = rangeLength,
): Mapping {
  const range =
    idleRanges.get(rangeLength)?.pop() ?? undisturbed(() => reserveRange(libc, rangeLength, viewLength))
  const prot = mayWrite ? READ_WRITE : PROT_READ
  const address = libc.mmap(range.address, length, prot, MAP_SHARED | MAP_FIXED, fd, 0)
  if (isFailure(address)) {
    const error = systemError(libc, 'mmap')
    if (isWhole(libc, range.address, length)) pushTo(idleRanges, rangeLength, range)
    throw error
  }
  mapped.add(range)
  return range
}

/**
 * Maps `fd` until the returned ArrayBuffer is collected, for programs that may keep views of it. Then the range goes
 * back to its pool and `onCollected` is called.
 */
export function mapUntilCollected(
  libc: Libc,
  fd: number,
  length: number,
  onCollected: () => void,
): ArrayBuffer {
  const rangeLength = rangeLengthOf(length)
  const address = bareRanges.get(rangeLength)?.pop() ?? reserveAddresses(libc, rangeLength)
  if (isFailure(libc.mmap(address, length, READ_WRITE, MAP_SHARED | MAP_FIXED, fd, 0))) {
    const error = systemError(libc, 'mmap')
    if (isWhole(libc, address, length)) pushTo(bareRanges, rangeLength, address)
    throw error
  }
  const memory = libc.view(address, length)
  const range = { address, length: rangeLength, onCollected }
  collectable.add(range)
  collected?.register(memory, range)
  return memory
}

/** The next power of two: bounds the number of pools when peers choose the lengths of their memory. */
export function rangeLengthOf(length: number): number {
  let rangeLength = RANGE_LENGTH_MIN
  while (rangeLength < length) rangeLength *= 2
  return rangeLength
}

/** A second call does nothing: the range may hold another mapping by then. */
export function unmapShared(libc: Libc, mapping: Mapping): void {
  if (!mapped.delete(mapping)) return
  if (makeIdle(libc, mapping.address, mapping.length)) pushTo(idleRanges, mapping.length, mapping)
}

/** False if the kernel refuses the anonymous memory. The range then keeps its mapping: leaked, but never dangling. */
function makeIdle(libc: Libc, address: bigint, length: number): boolean {
  return !isFailure(libc.mmap(address, length, READ_WRITE, IDLE | MAP_FIXED, -1, 0))
}

function reserveAddresses(libc: Libc, length: number): bigint {
  if (length > RANGE_LENGTH_MAX)
    throw new NicError('ERR_NIC_UNAVAILABLE', `${length} bytes are too many for one mapping`)
  const address = libc.mmap(null, length, READ_WRITE, IDLE, -1, 0)
  if (isFailure(address)) throw systemError(libc, 'mmap')
  noteRange(address, length)
  return BigInt(address)
}

function reserveRange(libc: Libc, length: number, viewLength: number): Mapping {
  const address = reserveAddresses(libc, length)
  const memory = libc.view(address, viewLength)
  if (memory.byteLength !== viewLength)
    throw new NicError('ERR_NIC_UNAVAILABLE', 'koffi.view gave another length')
  return { address, length, memory }
}

/**
 * Fills the hole that a refused mapping leaves if the kernel has removed the old pages first. False if something is
 * mapped there: the old pages, or a mapping that another thread has made in the hole, which must not be replaced.
 */
function isWhole(libc: Libc, address: bigint, length: number): boolean {
  const filled = libc.mmap(address, length, READ_WRITE, IDLE | MAP_FIXED_NOREPLACE, -1, 0)
  return !isFailure(filled) && BigInt(filled) === BigInt(address)
}

function pushTo<T>(pool: Map<number, T[]>, length: number, range: T): void {
  const ranges = pool.get(length)
  if (ranges === undefined) pool.set(length, [range])
  else ranges.push(range)
}

function isFailure(address: bigint | null): boolean {
  return address === null || BigInt.asUintN(64, BigInt(address)) === MAP_FAILED
}
