/**
 * Places that the kernel has refused to this thread. A program that tries again until its server listens may meet the
 * server between two system calls: the server's own port listens already, its hashed port does not yet. A connect to such
 * a place asks the hashed port again before it uses TCP.
 */

import { isTcpListening, isUnixListening } from '../../nic/index.ts'
import { performance } from '../../nic/performance.ts'
import { sleep } from '../../nic/real-time.ts'
import { type Family, UNIX } from '../host/unix-paths.ts'
import type { FallbackReason } from '../reasons.ts'
import type { Reached } from './worker-group.ts'

/** Longer than programs pause between two tries. */
const REFUSED_PLACE_TTL_MS = 60_000
const PLACES_MAX = 64
/** Pauses before the questions. A server that has just started needs some milliseconds for its second listener. */
const PAUSES_MS = [2, 4, 8, 16, 32]

/** When each place was refused, oldest first. */
const refusedMs = new Map<string, number>()

/** `name` is the address, or the path of a unix socket. */
export function noteRefused(name: string, port: number): void {
  const key = keyOf(name, port)
  refusedMs.delete(key)
  refusedMs.set(key, performance.now())
  const [oldest] = refusedMs.keys()
  if (refusedMs.size > PLACES_MAX && oldest !== undefined) refusedMs.delete(oldest)
}

export function forgetRefused(name: string, port: number): void {
  refusedMs.delete(keyOf(name, port))
}

function wasRefused(name: string, port: number): boolean {
  const sinceMs = refusedMs.get(keyOf(name, port))
  return sinceMs !== undefined && performance.now() - sinceMs < REFUSED_PLACE_TTL_MS
}

/**
 * Asks for the way to a listener. If the place was refused before and no Fast Sockets listener answers, the question is
 * repeated while the server's own port, or path, has a listener and `isWanted`.
 */
export async function askPatiently(
  name: string,
  port: number,
  family: Family,
  ask: () => Promise<Reached | FallbackReason>,
  isWanted = (): boolean => true,
): Promise<Reached | FallbackReason> {
  let answer = await ask()
  if (!wasRefused(name, port)) return answer
  const isListening = (): boolean => (family === UNIX ? isUnixListening(name) : isTcpListening(name, port))
  for (const pauseMs of PAUSES_MS) {
    const isUnanswered = 'code' in answer && answer.code === 'NOT_RELINKED'
    if (!isUnanswered || !isWanted() || !isListening()) break
    await sleep(pauseMs)
    answer = await ask()
  }
  return answer
}

function keyOf(name: string, port: number): string {
  return `${name} ${port}`
}
