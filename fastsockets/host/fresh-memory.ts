/** Uninitialised memory that is not part of a pool: the caller becomes its only owner. */
export function allocateFresh(length: number): Buffer<ArrayBuffer> {
  return Buffer.allocUnsafeSlow(length)
}
