/**
 * Connections over TCP to listeners that the policy requires to be fast. Each waits here, unread and not shown to its program, until
 * its client moves it: relinked clients start on TCP. All others are reset: at once if the client cannot be relinked
 * (held-clients.ts), else after a while.
 */
import type { Server } from 'node:net'
import { performance } from '../../nic/performance.ts'
import { clearTimeout, setTimeout } from '../../nic/real-time.ts'
import { type ConnectedTcp, endsOfTcp, type FourAddresses } from '../handle/tcp-below.ts'
import { keyOf } from './four-addresses.ts'
import { judgeClients, type Verdict } from './held-clients.ts'

/** Clients look after 50 or 100 ms whether they are held, then load what is missing; a busy machine needs more time. */
const HOLD_MS = 5000
/** As many as a backlog has. The next one resets the oldest. */
const HELD_MAX = 511
/** Clients are judged for so long at a time: on a host with many descriptors that may take long. */
const JUDGED_AT_ONCE_MS = 5
const PAUSE_MS = 10

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
/** The clients that are being judged. */
let judging:
  | { readonly clients: readonly Waiting[]; readonly verdicts: Generator<undefined, Verdict[]> }
  | undefined
let judgeTimer: NodeJS.Timeout | undefined

/** Calls `onRefused` if the connection is reset. */
export function hold(tcp: ConnectedTcp, server: Server, onRefused: (ends: FourAddresses) => void): void {
  const ends = endsOfTcp(tcp, true)
  if (ends === undefined) return tcp.close()
  const key = keyOf(ends)
  const timer = setTimeout(refuse, HOLD_MS, key).unref()
  waiting.set(key, { tcp, server, ends, onRefused, timer, isJudged: false })
  const [oldest] = waiting.keys()
  if (waiting.size > HELD_MAX && oldest !== undefined) refuse(oldest)
  if (judgeTimer === undefined) judgeTimer = setTimeout(judgeSome).unref()
}

function judgeSome(): void {
  judging ??= beginToJudge()
  const { clients, verdicts } = judging
  const pauseAtMs = performance.now() + JUDGED_AT_ONCE_MS
  let step = verdicts.next()
  while (!step.done && performance.now() < pauseAtMs) step = verdicts.next()
  if (step.done) {
    judging = undefined
    for (const [at, client] of clients.entries()) {
      const key = keyOf(client.ends)
      // Meanwhile another client may have its port.
      if (step.value[at] === 'impossible' && waiting.get(key) === client) refuse(key)
    }
  }
  const isDone = judging === undefined && [...waiting.values()].every(({ isJudged }) => isJudged)
  judgeTimer = isDone ? undefined : setTimeout(judgeSome, PAUSE_MS).unref()
}

function beginToJudge(): NonNullable<typeof judging> {
  const clients = [...waiting.values()].filter(({ isJudged }) => !isJudged)
  for (const client of clients) client.isJudged = true
  return { clients, verdicts: judgeClients(clients.map(({ ends }) => ends)) }
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
