/** Up to this length, an Ethernet frame's, zeroed memory costs less: Node makes other memory by a call from JavaScript to C++. */
const ZEROED_MAX = 1536

/** Memory that is not part of a pool, with any content: the caller becomes its only owner. */
export function allocateFresh(length: number): Buffer<ArrayBuffer> {
  return length <= ZEROED_MAX ? Buffer.alloc(length) : Buffer.allocUnsafeSlow(length)
}
