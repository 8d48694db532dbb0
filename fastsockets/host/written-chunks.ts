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

/** So much Node sets aside for a character, of the encodings that it writes by itself. */
const BYTES_SET_ASIDE: Readonly<Record<string, number>> = {
  utf8: 3,
  'utf-8': 3,
  ucs2: 2,
  'ucs-2': 2,
  utf16le: 2,
  'utf-16le': 2,
  latin1: 1,
  binary: 1,
  ascii: 1,
}
/** With more, a string is written as a buffer is. */
const SET_ASIDE_MAX = 16_384

/** Node counts a write before it fails, but for a short string that is written by itself. */
export function isCountedLate(data: unknown, encoding: string): boolean {
  if (typeof data !== 'string') return false
  return data.length * (BYTES_SET_ASIDE[encoding] ?? Number.POSITIVE_INFINITY) <= SET_ASIDE_MAX
}

export function lengthOf(chunks: readonly Uint8Array[]): number {
  let length = 0
  for (const chunk of chunks) length += chunk.length
  return length
}
