/** What `Writable` hands to `_writev`. */
export interface WrittenChunk {
  readonly chunk: Uint8Array | string
  readonly encoding: BufferEncoding
}

export function toBytes(data: Uint8Array | string, encoding: BufferEncoding): Uint8Array {
  return typeof data === 'string' ? Buffer.from(data, encoding) : data
}

/** What Writable passes to `_writev`: `allBuffers` is set on the array if all chunks are buffers. */
export function toChunks(data: readonly WrittenChunk[]): Uint8Array[] {
  return data.map(({ chunk, encoding }) => toBytes(chunk, encoding))
}

export function lengthOf(chunks: readonly Uint8Array[]): number {
  let length = 0
  for (const chunk of chunks) length += chunk.length
  return length
}
