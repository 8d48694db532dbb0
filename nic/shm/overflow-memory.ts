/**
 * The overflow rings of a segment (ring-layout.ts). The kernel allocates their pages at the first write. The producer
 * frees the pages after a burst, so an interface without bursts costs address space only.
 */
import { AsyncResource } from 'node:async_hooks'
import { MADV_REMOVE } from '../posix/constants.ts'
import type { Libc } from '../posix/libc.ts'
import type { Mapping } from '../posix/mapping.ts'
import { clearTimeout, setTimeout } from '../real-time.ts'
import { type OpenOverflow, overflowSizeOf } from '../ring/ring-layout.ts'
import type { RingProducer } from '../ring/ring-producer.ts'
import { undisturbed } from '../threads/undisturbed.ts'
import { overflowOffset } from './segment.ts'

/** How long the pages are kept for the next burst. */
const KEPT_MS = 1000
/** The largest page size of Linux for such memory on any processor. */
const PAGE_MAX = 64 * 1024

/** Views of pooled address ranges, which are reused with the range: at most one for each overflow ring. */
const viewsOfRanges = new WeakMap<Mapping, ArrayBuffer[]>()
/** The timer runs in the asynchronous context of this module, not in that of a program. */
const scope = new AsyncResource('FASTSOCKETSOVERFLOW')

/** Memory of the overflow ring of ring `index`. Valid until `mapping` is unmapped. */
export function overflowMemory(
  libc: Libc,
  mapping: Mapping,
  ringSize: number,
  index: 0 | 1,
): ReturnType<OpenOverflow> {
  let views = viewsOfRanges.get(mapping)
  if (views === undefined) {
    views = []
    viewsOfRanges.set(mapping, views)
  }
  const address = mapping.address + BigInt(overflowOffset(ringSize, index))
  views[index] ??= undisturbed(() => libc.view(address, overflowSizeOf(ringSize)))
  return { memory: views[index] as ArrayBuffer, offset: 0 }
}

/** The overflow ring of the sending direction. This side frees its pages, as only the producer knows if it is unused. */
export class OverflowToPeer {
  readonly #libc: Libc
  readonly #mapping: Mapping
  readonly #ringSize: number
  readonly #index: 0 | 1
  readonly #producer: RingProducer
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(libc: Libc, mapping: Mapping, ringSize: number, index: 0 | 1, producer: RingProducer) {
    this.#libc = libc
    this.#mapping = mapping
    this.#ringSize = ringSize
    this.#index = index
    this.#producer = producer
  }

  /** The producer calls this each time it enters the overflow ring. */
  open(): ReturnType<OpenOverflow> {
    this.#watch()
    return overflowMemory(this.#libc, this.#mapping, this.#ringSize, this.#index)
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
  }

  #watch(): void {
    this.#timer ??= scope.runInAsyncScope(() => setTimeout(() => this.#releasePages(), KEPT_MS).unref())
  }

  #releasePages(): void {
    this.#timer = undefined
    if (this.#isClosed) return
    if (this.#producer.isInOverflow && !this.#producer.leaveOverflow()) return this.#watch()
    // The page of the last SWITCH stays: the consumer may not have read it yet.
    const kept = this.#producer.switchOffset & -PAGE_MAX
    this.#remove(0, kept)
    this.#remove(kept + PAGE_MAX, overflowSizeOf(this.#ringSize))
  }

  #remove(from: number, to: number): void {
    const address = this.#mapping.address + BigInt(overflowOffset(this.#ringSize, this.#index) + from)
    if (to > from) this.#libc.madvise(address, to - from, MADV_REMOVE)
  }
}
