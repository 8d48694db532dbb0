/**
 * `streamBaseState`: where Node's native streams say whether the last write was over at once, and what they have read. It is
 * reached through `process.binding`; where that is not to be had, nothing is noted.
 */
import type { ReadListener } from './node-internals.ts'

interface StreamWrap {
  readonly streamBaseState?: unknown
  readonly kLastWriteWasAsync?: unknown
  readonly kReadBytesOrError?: unknown
  readonly kArrayBufferOffset?: unknown
}

function findStreamState() {
  // Asked for its deprecations, Node would name this one.
  const flags = `${process.env.NODE_OPTIONS} ${process.execArgv.join(' ')}`.replaceAll('_', '-')
  if (flags.includes('pending-deprecation') || process.env.NODE_PENDING_DEPRECATION === '1') return undefined
  try {
    const { binding } = process as unknown as { binding(name: string): StreamWrap }
    const { streamBaseState: state, ...indices } = binding.call(process, 'stream_wrap')
    const { kLastWriteWasAsync: async, kReadBytesOrError: read, kArrayBufferOffset: offset } = indices
    if (typeof async !== 'number' || typeof read !== 'number' || typeof offset !== 'number') return undefined
    return state instanceof Int32Array ? { state, async, read, offset } : undefined
  } catch {
    return undefined
  }
}

const streamState = findStreamState()

/**
 * What net.js reads after each write. A handle that a program has made itself may leave it as it is, as that of spdy does:
 * then what counts is the last write of any other socket.
 */
export function noteLastWrite(isAsync: boolean): void {
  if (streamState !== undefined) streamState.state[streamState.async] = isAsync ? 1 : 0
}

/**
 * What the native stream has read, in memory of its own for a program that may transfer it, as a TCP handle gives it. Newer
 * Node has many pieces of a JSStream, of all sockets, in one.
 */
export function ownRead(arrayBuffer: ArrayBuffer | undefined): ArrayBuffer | undefined {
  if (arrayBuffer === undefined || streamState === undefined) return arrayBuffer
  const { state, read, offset } = streamState
  const length = state[read] as number
  if (length === arrayBuffer.byteLength) return arrayBuffer
  const start = state[offset] as number
  state[offset] = 0
  return arrayBuffer.slice(start, start + length)
}

/** The name of net.js's own reader. */
const STOCK_READER = 'onStreamRead'

/**
 * Tells whoever has put a reader of its own in the place of net.js's that a read has failed, as a native stream does: an agent
 * of http has one for sockets that nobody uses, and wants no 'error' of them. False if nobody has.
 */
export function tellReader(handle: object | null | undefined, errno: number): boolean {
  const { onread } = (handle ?? {}) as { readonly onread?: ReadListener }
  if (onread === undefined || onread.name === STOCK_READER) return false
  return tellRead(handle as object, onread, errno)
}

/** Tells a reader what no native code has to know of: the end, or an error. False where it must go by the native stream. */
export function tellRead(handle: object, reader: ReadListener, errno: number): boolean {
  if (streamState === undefined) return false
  streamState.state[streamState.read] = errno
  reader.call(handle, undefined)
  return true
}
