/**
 * Frees short-lived buffers at once, without the collector.
 *
 * A JSStream copies each chunk that native code writes into a new buffer. If V8's collector freed them, a gigabyte a
 * second would make V8 mark the whole heap every few milliseconds, and the next chunk would never be in the core's
 * caches.
 */
import { MessageChannel, type MessagePort } from 'node:worker_threads'

/** The collector frees smaller buffers more cheaply than a transfer does. */
const WORTH_MIN = 4096

type Transfer = (this: ArrayBuffer, length: number) => ArrayBuffer

/** Undefined in Node 20. */
const { transfer } = ArrayBuffer.prototype as { transfer?: Transfer }
let closedPort: MessagePort | undefined
const spent: ArrayBuffer[] = []

/**
 * Frees the memory of `buffers`, which are empty afterwards; the caller must be their only user. A buffer that is
 * part of a larger ArrayBuffer is left alone.
 */
export function freeNow(buffers: readonly Uint8Array[]): void {
  for (const bytes of buffers) {
    if (bytes.length < WORTH_MIN) continue
    const { buffer } = bytes
    if (buffer.byteLength === bytes.length) spent.push(buffer as ArrayBuffer)
  }
  if (spent.length === 0) return
  if (transfer !== undefined) for (const buffer of spent) transfer.call(buffer, 0)
  else transferAway()
  spent.length = 0
}

/** Node 20: a closed port drops transferred memory. One call takes all buffers: it costs as much for one as for ten. */
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
