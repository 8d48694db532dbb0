/** One entry of the array that `Writable` passes to `_writev`. */
export interface WrittenChunk {
  readonly chunk: Uint8Array | string
  readonly encoding: BufferEncoding
}

/** The encoding of a chunk that is a buffer; some versions of Node also pass it with a string. */
const NO_ENCODING = 'buffer'

export function toBytes(data: Uint8Array | string, encoding: BufferEncoding): Uint8Array {
  if (typeof data !== 'string') return data
  if ((encoding as string) === NO_ENCODING) throw wrongArgument('Second argument must be a buffer')
  return Buffer.from(data, encoding)
}

/** The error that Node's native code throws for the same argument. */
function wrongArgument(message: string): Error {
  return Object.assign(new TypeError(message), { code: 'ERR_INVALID_ARG_TYPE' })
}

/** The bytes of the array that `Writable` passes to `_writev`. */
export function toChunks(data: readonly WrittenChunk[]): Uint8Array[] {
  return data.map(({ chunk, encoding }) =>
    toBytes(chunk, (encoding as string) === NO_ENCODING ? 'utf8' : encoding),
  )
}

/** Bytes that Node reserves per character, for the encodings that it writes directly. */
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
/** Node writes a string that needs more as a buffer. */
const SET_ASIDE_MAX = 16_384

/** True for a short string alone in its write: Node adds it to `bytesWritten` only after success, others before. */
export function isCountedLate(data: unknown, encoding: string): boolean {
  if (typeof data !== 'string') return false
  return data.length * (BYTES_SET_ASIDE[encoding] ?? Number.POSITIVE_INFINITY) <= SET_ASIDE_MAX
}

export function lengthOf(chunks: readonly Uint8Array[]): number {
  let length = 0
  for (const chunk of chunks) length += chunk.length
  return length
}
