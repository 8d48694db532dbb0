/** Default size of the rings of a new connection: the more memory is pinned, the smaller. */
import { RING_SIZE_DEFAULT, RING_SIZE_MIN } from './frame-layout.ts'
import { halfOfPinnable } from './pinnable.ts'

/** For all rings of a process together, while they can shrink. Each connection has two. Less under a low limit. */
export const RINGS_PINNED_MAX = 256 * 1024 * 1024
/** Share of the remaining bytes that one connection takes, so that later ones find some. */
const PART = 64

export function ringSizeAfter(pinnedBytes: number, pinnedMax = halfOfPinnable(RINGS_PINNED_MAX)): number {
  const left = pinnedMax - pinnedBytes
  let size = RING_SIZE_DEFAULT
  while (size > RING_SIZE_MIN && 2 * size > left / PART) size /= 2
  return size
}
