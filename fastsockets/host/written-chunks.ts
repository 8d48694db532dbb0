/** What `Writable` hands to `_writev`. */
export interface WrittenChunk {
  readonly chunk: Uint8Array | string
  readonly encoding: BufferEncoding
}

/** What `Writable` lets pass beside real encodings, in some versions of Node. */
const NO_ENCODING = 'buffer'

export function toBytes(data: Uint8Array | string, encoding: BufferEncoding): Uint8Array {
  if (typeof data !== 'string') return data
  if ((encoding as string) === NO_ENCODING) throw wrongArgument('Second argument must be a buffer')
  return Buffer.from(data, encoding)
}

/** As native code makes it. */
function wrongArgument(message: string): Error {
  return Object.assign(new TypeError(message), { code: 'ERR_INVALID_ARG_TYPE' })
}

/** What Writable passes to `_writev`: `allBuffers` is set on the array if all chunks are buffers. */
export function toChunks(data: readonly WrittenChunk[]): Uint8Array[] {
  return data.map(({ chunk, encoding }) =>
    toBytes(chunk, (encoding as string) === NO_ENCODING ? 'utf8' : encoding),
  )
}

export function lengthOf(chunks: readonly Uint8Array[]): number {
  let length = 0
  for (const chunk of chunks) length += chunk.length
  return length
}
