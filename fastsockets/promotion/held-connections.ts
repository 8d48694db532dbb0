/**
 * Connections over TCP to listeners that the policy requires to be fast. Each waits here, unread and not shown to its program, until
 * its client moves it: relinked clients start on TCP. Those of other clients are closed after a while.
 */
import type { Server } from 'node:net'
import { clearTimeout, setTimeout } from '../../nic/real-time.ts'
import { type ConnectedTcp, endsOfTcp } from '../handle/tcp-below.ts'
import { keyOf } from './four-addresses.ts'

/** Clients look after 50 or 100 ms whether they are held, then load what is missing; a busy machine needs more time. */
const HOLD_MS = 5000
/** As many as a backlog has. The next one closes the oldest. */
const HELD_MAX = 511

export interface Held {
  readonly tcp: ConnectedTcp
  readonly server: Server
}

interface Waiting extends Held {
  readonly timer: NodeJS.Timeout
}

/** Oldest first. */
const waiting = new Map<string, Waiting>()

export function hold(tcp: ConnectedTcp, server: Server): void {
  const ends = endsOfTcp(tcp, true)
  if (ends === undefined) return tcp.close()
  const key = keyOf(ends)
  const timer = setTimeout(drop, HOLD_MS, key).unref()
  waiting.set(key, { tcp, server, timer })
  const [oldest] = waiting.keys()
  if (waiting.size > HELD_MAX && oldest !== undefined) drop(oldest)
}

function drop(key: string): void {
  take(key)?.tcp.close()
}

/** The connection with these addresses, which now belongs to the caller. */
export function take(key: string): Held | undefined {
  const found = waiting.get(key)
  clearTimeout(found?.timer)
  waiting.delete(key)
  return found
}
