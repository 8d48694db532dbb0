/**
 * Shared mappings that can never be touched after they are gone.
 *
 * A typed array over unmapped memory kills the process, and the garbage collector, not we, decides when the last one
 * goes. So an address range is reserved once and never given back to the kernel: mapping a segment replaces the range's
 * pages by the segment's (`MAP_FIXED`), releasing it replaces them by untouched anonymous memory, and the range waits
 * in a pool for the next segment of its size. The shared memory itself is freed at once; what stays is address space,
 * as much as the largest number of segments that were ever mapped together. Pools belong to threads, and a worker's goes
 * with it (thread-ranges.ts).
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
/** One page of the smallest kind. */
const RANGE_LENGTH_MIN = 4096
/** The longest ArrayBuffer of Node 20, which ends the process when a longer one is asked for. */
const RANGE_LENGTH_MAX = 2 ** 32
const IDLE = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE

export interface Mapping {
  readonly address: bigint
  readonly length: number
  /** Over the mapped bytes, or those at their beginning that are always used. After `unmapShared` it reads as zeros, or as somebody else's segment: drop every view. */
  readonly memory: ArrayBuffer
}

const idleRanges = new Map<number, Mapping[]>()
const mapped = new Set<Mapping>()
/** Ranges without an ArrayBuffer: that of their last use was collected. */
const bareRanges = new Map<number, bigint[]>()
const collectable = new Set<Collectable>()
/** Undefined if a program has removed the class before: what such ranges map stays until the process ends. */
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

// Where nobody looks after what a worker leaves behind, it lets go of its segments at least if it ends by itself.
if (!isMainThread && ownRow < 0) {
  process.on('exit', () => {
    for (const mapping of mapped) unmapShared(requireLibc(), mapping)
    for (const { address, length } of collectable) makeIdle(requireLibc(), address, length)
  })
}

/**
 * Maps the first `length` bytes of `fd`. The descriptor may be closed afterwards. `rangeLength`: of the address range, if it
 * is to be pooled with others of other lengths. Unless `mayWrite`, to write there kills the process. All
 * with one `rangeLength` have one `viewLength`: how much of it `memory` shows.
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
 * Maps `fd` for a program that keeps views as long as it likes: until the ArrayBuffer is collected. Then the range waits for the
 * next use, and `onCollected` is called.
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

/** Lengths of ranges that are pooled together: so many different ones that a peer may choose the length of its memory. */
export function rangeLengthOf(length: number): number {
  let rangeLength = RANGE_LENGTH_MIN
  while (rangeLength < length) rangeLength *= 2
  return rangeLength
}

/** Once is enough: what is unmapped already may be mapped again, by somebody else. */
export function unmapShared(libc: Libc, mapping: Mapping): void {
  if (!mapped.delete(mapping)) return
  if (makeIdle(libc, mapping.address, mapping.length)) pushTo(idleRanges, mapping.length, mapping)
}

/** Without anonymous memory in its place a range must stay as it is: leaked, but never dangling. */
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
 * Fills the hole that a refused mapping may have left, where the kernel took the old pages away first. False if there is
 * something: the old pages, or what somebody else has mapped there meanwhile, which must never be replaced.
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
