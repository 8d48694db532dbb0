/**
 * Connections over TCP to listeners that the policy requires to be fast. Each waits here, unread and not shown to its program, until
 * its client moves it: relinked clients start on TCP. All others are reset: at once if the client cannot be relinked
 * (held-clients.ts), else after a while.
 */
import type { Server } from 'node:net'
import { clearTimeout, performance, setTimeout } from '../../nic/real-time.ts'
import { type ConnectedTcp, endsOfTcp, type FourAddresses } from '../handle/tcp-below.ts'
import { keyOf } from './four-addresses.ts'
import { judgeClients } from './held-clients.ts'

/** Clients look after 50 or 100 ms whether they are held, then load what is missing; a busy machine needs more time. */
const HOLD_MS = 5000
/** As many as a backlog has. The next one resets the oldest. */
const HELD_MAX = 511
/** To look at the clients may take long if this host has many processes: the pause is so many times as long. */
const PAUSES_PER_LOOK = 5

export interface Held {
  readonly tcp: ConnectedTcp
  readonly server: Server
}

interface Waiting extends Held {
  readonly ends: FourAddresses
  readonly onRefused: (ends: FourAddresses) => void
  readonly timer: NodeJS.Timeout
  isJudged: boolean
}

/** Oldest first. */
const waiting = new Map<string, Waiting>()
let lookTimer: NodeJS.Timeout | undefined
let pauseMs = 0

/** Calls `onRefused` if the connection is reset. */
export function hold(tcp: ConnectedTcp, server: Server, onRefused: (ends: FourAddresses) => void): void {
  const ends = endsOfTcp(tcp, true)
  if (ends === undefined) return tcp.close()
  const key = keyOf(ends)
  const timer = setTimeout(refuse, HOLD_MS, key).unref()
  waiting.set(key, { tcp, server, ends, onRefused, timer, isJudged: false })
  const [oldest] = waiting.keys()
  if (waiting.size > HELD_MAX && oldest !== undefined) refuse(oldest)
  if (lookTimer === undefined) lookTimer = setTimeout(look, pauseMs).unref()
}

function look(): void {
  lookTimer = undefined
  const startMs = performance.now()
  const unjudged = [...waiting].filter(([, { isJudged }]) => !isJudged)
  const verdicts = judgeClients(unjudged.map(([, { ends }]) => ends))
  for (const [at, [key, one]] of unjudged.entries()) {
    one.isJudged = true
    if (verdicts[at] === 'impossible') refuse(key)
  }
  pauseMs = PAUSES_PER_LOOK * (performance.now() - startMs)
}

function refuse(key: string): void {
  const held = waiting.get(key)
  if (held === undefined) return
  take(key)
  held.tcp.reset()
  held.onRefused(held.ends)
}

/** The connection with these addresses, which now belongs to the caller. */
export function take(key: string): Held | undefined {
  const found = waiting.get(key)
  clearTimeout(found?.timer)
  waiting.delete(key)
  return found
}
