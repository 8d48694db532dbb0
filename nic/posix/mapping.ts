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
const IDLE = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE

export interface Mapping {
  readonly address: bigint
  readonly length: number
  /** Over the mapped bytes. After `unmapShared` it reads as zeros, or as somebody else's segment: drop every view. */
  readonly memory: ArrayBuffer
}

const idleRanges = new Map<number, Mapping[]>()
const mapped = new Set<Mapping>()

// Where nobody looks after what a worker leaves behind, it lets go of its segments at least if it ends by itself.
if (!isMainThread && ownRow < 0) {
  process.on('exit', () => {
    for (const mapping of mapped) unmapShared(requireLibc(), mapping)
  })
}

/** Maps the first `length` bytes of `fd` for reading and writing. The descriptor may be closed afterwards. */
export function mapShared(libc: Libc, fd: number, length: number): Mapping {
  const range = idleRanges.get(length)?.pop() ?? undisturbed(() => reserveRange(libc, length))
  const address = libc.mmap(range.address, length, READ_WRITE, MAP_SHARED | MAP_FIXED, fd, 0)
  if (isFailure(address)) {
    const error = systemError(libc, 'mmap')
    if (isWhole(libc, range)) keep(range)
    throw error
  }
  mapped.add(range)
  return range
}

/** Once is enough: what is unmapped already may be mapped again, by somebody else. */
export function unmapShared(libc: Libc, mapping: Mapping): void {
  if (!mapped.delete(mapping)) return
  const address = libc.mmap(mapping.address, mapping.length, READ_WRITE, IDLE | MAP_FIXED, -1, 0)
  // Without anonymous memory in its place the range must stay as it is: leaked, but never dangling.
  if (!isFailure(address)) keep(mapping)
}

function reserveRange(libc: Libc, length: number): Mapping {
  const address = libc.mmap(null, length, READ_WRITE, IDLE, -1, 0)
  if (isFailure(address)) throw systemError(libc, 'mmap')
  noteRange(address, length)
  const memory = libc.view(address, length)
  if (memory.byteLength !== length)
    throw new NicError('ERR_NIC_UNAVAILABLE', 'koffi.view gave another length')
  return { address, length, memory }
}

/**
 * Fills the hole that a refused mapping may have left, where the kernel took the old pages away first. False if there is
 * something: the old pages, or what somebody else has mapped there meanwhile, which must never be replaced.
 */
function isWhole(libc: Libc, range: Mapping): boolean {
  const address = libc.mmap(range.address, range.length, READ_WRITE, IDLE | MAP_FIXED_NOREPLACE, -1, 0)
  return !isFailure(address) && BigInt(address) === BigInt(range.address)
}

function keep(range: Mapping): void {
  const ranges = idleRanges.get(range.length)
  if (ranges === undefined) idleRanges.set(range.length, [range])
  else ranges.push(range)
}

function isFailure(address: bigint | null): boolean {
  return address === null || BigInt.asUintN(64, BigInt(address)) === MAP_FAILED
}
