/**
 * What sockets on TCP read, for programs that mostly read. Node counts the bytes; they are looked at now and then, less often
 * the longer nothing comes, and never without an open socket.
 */
import net from 'node:net'
import { clearTimeout, setTimeout } from '../../nic/real-time.ts'
import { BYTES_PER_US } from './price.ts'

const DELAY_MS = 100
const DELAY_MAX_MS = 3200

const { _getActiveHandles: activeHandles } = process as unknown as { _getActiveHandles?: () => unknown[] }

/** The sockets that keep this process alive. */
export function openSockets(): net.Socket[] {
  const all = activeHandles?.call(process) ?? []
  return all.filter((one): one is net.Socket => one instanceof net.Socket)
}

/** Calls `onRead` with what reading over TCP has cost since the last call, in microseconds. */
export function watchReads(onRead: (us: number) => void): { stop(): void } {
  let delayMs = DELAY_MS
  let seen = 0
  let timer: NodeJS.Timeout | undefined
  const look = (): void => {
    let total = 0
    for (const { bytesRead } of openSockets()) total += bytesRead
    const read = Math.max(0, total - seen)
    seen = total
    delayMs = read > 0 ? DELAY_MS : Math.min(delayMs * 2, DELAY_MAX_MS)
    timer = setTimeout(look, delayMs).unref()
    if (read > 0) onRead(read / BYTES_PER_US)
  }
  timer = setTimeout(look, delayMs).unref()
  return { stop: () => clearTimeout(timer) }
}
