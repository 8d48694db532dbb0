/**
 * Frees short-lived buffers at once, without the collector.
 *
 * A JSStream copies each chunk that native code writes into a new buffer. If V8's collector freed them, a gigabyte a
 * second would make V8 mark the whole heap every few milliseconds, and the next chunk would never be in the core's
 * caches.
 */
import { MessageChannel, type MessagePort } from 'node:worker_threads'
import { makeHidden } from '../../nic/own-resources.ts'
import { processBinding } from './process-binding.ts'
import { UV_ECANCELED } from './socket-errors.ts'

/** The collector frees smaller buffers more cheaply than a transfer does. */
const WORTH_MIN = 4096
/** Bytes that Node 20 frees together: its way costs as much for one buffer as for ten. */
const TOGETHER = 64 * 1024

type Transfer = (this: ArrayBuffer, length: number) => ArrayBuffer

/** Undefined in Node 20. */
const { transfer } = ArrayBuffer.prototype as { transfer?: Transfer }
/** Whether a JSStream copies what it is given to write; undefined until the first write. */
let isCopying: boolean | undefined
/** What was made to find that out. The collector must not free it: the program's async hooks would see that. */
const probes: object[] = []
let closedPort: MessagePort | undefined
const spent: ArrayBuffer[] = []
let spentLength = 0

/** The members of Node's JSStream that tell whether it copies; `writeBuffer` calls `onwrite`. */
interface WritableStream {
  onwrite(request: object, buffers: readonly Uint8Array[]): number
  writeBuffer(request: object, bytes: Uint8Array): number
}

/** Writes a byte to a new stream of the class. True if `onwrite` gets it in other memory: then native code has made a copy. */
export function copiesWrites(JsStream: new () => WritableStream, WriteWrap: new () => object): boolean {
  const stream = new JsStream()
  const bytes = new Uint8Array(1)
  let isCopy = false
  stream.onwrite = (_request, [written]) => {
    isCopy = written !== undefined && written.length === 1 && written.buffer !== bytes.buffer
    return UV_ECANCELED
  }
  const request = new WriteWrap()
  probes.push(stream, request)
  stream.writeBuffer(request, bytes)
  return isCopy
}

function checkCopying(): boolean {
  const JsStream = processBinding('js_stream')?.JSStream
  const WriteWrap = processBinding('stream_wrap')?.WriteWrap
  if (typeof JsStream !== 'function' || typeof WriteWrap !== 'function') return false
  return makeHidden(() => copiesWrites(JsStream as new () => WritableStream, WriteWrap as new () => object))
}

/**
 * Frees the memory of `buffers`, which a JSStream was given to write, and which are empty soon afterwards. Does nothing if these are no
 * copies, or if that cannot be found out. A buffer that is part of a larger ArrayBuffer is left alone.
 */
export function freeNow(buffers: readonly Uint8Array[]): void {
  for (const bytes of buffers) {
    if (bytes.length < WORTH_MIN) continue
    const { buffer } = bytes
    if (buffer.byteLength !== bytes.length) continue
    spent.push(buffer as ArrayBuffer)
    spentLength += bytes.length
  }
  if (spentLength < (transfer === undefined ? TOGETHER : 1)) return
  isCopying ??= checkCopying()
  if (isCopying && transfer === undefined) transferAway()
  else if (isCopying) for (const buffer of spent) transfer?.call(buffer, 0)
  spent.length = 0
  spentLength = 0
}

/** Node 20: a closed port drops transferred memory. */
function transferAway(): void {
  closedPort ??= openClosedPort()
  closedPort.postMessage(undefined, spent)
}

/** Made on first use only: the program's async hooks see the port's end. */
function openClosedPort(): MessagePort {
  const { port1 } = new MessageChannel()
  port1.close()
  return port1
}
