/**
 * Access to `streamBaseState`, the array in which Node's native streams record whether the last write completed
 * synchronously, and the size of the last read. It comes from `process.binding`. Without that, the functions of this
 * file record nothing.
 */
import type { ReadListener } from './node-internals.ts'
import { processBinding } from './process-binding.ts'

interface StreamWrap {
  readonly streamBaseState?: unknown
  readonly kLastWriteWasAsync?: unknown
  readonly kReadBytesOrError?: unknown
  readonly kArrayBufferOffset?: unknown
}

function findStreamState() {
  const wrap: StreamWrap = processBinding('stream_wrap') ?? {}
  const { streamBaseState: state, kLastWriteWasAsync: async } = wrap
  const { kReadBytesOrError: read, kArrayBufferOffset: offset } = wrap
  if (typeof async !== 'number' || typeof read !== 'number' || typeof offset !== 'number') return undefined
  return state instanceof Int32Array ? { state, async, read, offset } : undefined
}

const streamState = findStreamState()

/**
 * Sets the flag that net.js reads after each write. Handles made by programs, as in spdy, may not set it: net.js then
 * reads the flag of the last write of any other socket.
 */
export function noteLastWrite(isAsync: boolean): void {
  if (streamState !== undefined) streamState.state[streamState.async] = isAsync ? 1 : 0
}

/**
 * The bytes of the current read in an ArrayBuffer of their own, as a TCP handle passes them: the program may transfer
 * it. Newer Node puts reads of many JSStreams into one ArrayBuffer.
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

/** What the read that a native stream reports now says: so many bytes, or a negative errno; undefined where it is not known. */
export function lastRead(): { readonly result: number; readonly offset: number } | undefined {
  if (streamState === undefined) return undefined
  const { state, read, offset } = streamState
  return { result: state[read] as number, offset: state[offset] as number }
}

export function canSeeReads(): boolean {
  return streamState !== undefined
}

/** Whether the write that a native stream has just begun goes on after the call. */
export function isLastWriteAsync(): boolean {
  return streamState !== undefined && streamState.state[streamState.async] !== 0
}

/** The name of the `onread` function of net.js. */
export const STOCK_READER = 'onStreamRead'

/**
 * Reports a failed read to an `onread` that replaces that of net.js, as a native stream does. The agent of http sets
 * one on idle sockets, which must not emit 'error'. False if `onread` is that of net.js.
 */
export function reportToReader(handle: object | null | undefined, errno: number): boolean {
  const { onread } = (handle ?? {}) as { readonly onread?: ReadListener }
  if (onread === undefined || onread.name === STOCK_READER) return false
  return reportRead(handle as object, onread, errno)
}

/**
 * Calls `reader` with an end or an error, without the native stream. False without `streamBaseState`: the caller then
 * must use the native stream.
 */
export function reportRead(handle: object, reader: ReadListener, errno: number): boolean {
  if (streamState === undefined) return false
  streamState.state[streamState.read] = errno
  reader.call(handle, undefined)
  return true
}
