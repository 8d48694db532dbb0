/**
 * Memory that was made for a moment, and goes back at once.
 *
 * Native code that writes to a JSStream has each piece copied for us into a buffer of its own. Left to V8's collector, a
 * gigabyte a second of them has it mark the whole heap every few milliseconds (docs/decisions/0083-small-heaps.md), and the
 * next piece never lies in memory that the core's caches know.
 */
import { MessageChannel, type MessagePort } from 'node:worker_threads'

/** Smaller ones cost the collector less than us. */
const WORTH_MIN = 4096

type Transfer = (this: ArrayBuffer, length: number) => ArrayBuffer

/** Node 21 and later. */
const { transfer } = ArrayBuffer.prototype as { transfer?: Transfer }
let closedPort: MessagePort | undefined
const spent: ArrayBuffer[] = []

/** Gives back the memory of buffers that nobody else has; they are empty from now on. Of those that share theirs, none. */
export function giveBack(buffers: readonly Uint8Array[]): void {
  for (const bytes of buffers) {
    if (bytes.length < WORTH_MIN) continue
    const { buffer } = bytes
    if (buffer.byteLength === bytes.length) spent.push(buffer as ArrayBuffer)
  }
  if (spent.length === 0) return
  if (transfer !== undefined) for (const buffer of spent) transfer.call(buffer, 0)
  else post()
  spent.length = 0
}

/** What is transferred by way of a port that is closed is gone. All at once: a call costs as much for one as for ten. */
function post(): void {
  closedPort ??= openClosedPort()
  closedPort.postMessage(undefined, spent)
}

/** Not before it is needed: whoever has asynchronous hooks sees it end. */
function openClosedPort(): MessagePort {
  const { port1 } = new MessageChannel()
  port1.close()
  return port1
}
