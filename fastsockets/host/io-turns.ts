/**
 * Runs the poller after the I/O of an event loop iteration and before its immediates, in libuv's I/O phase.
 *
 * Node promises that an immediate set by an I/O callback runs before any timer and any other I/O. A poller called by an
 * immediate would break that promise. See docs/decisions/0092-io-turns.md.
 */
import { eventLoop } from '../../am/channels.ts'
import { type IoPhase, openIoPhase } from '../../nic/index.ts'
import { performance } from '../../nic/performance.ts'
import { nextTick, queueMicrotask, setImmediate } from '../../nic/real-time.ts'
import { drainTicks, type NativeStream, type NodeInternals, reportUncaught } from './node-internals.ts'

const NEVER = -1
/**
 * Looks of the event loop for I/O before a program is notified of a connection that the peer has not answered yet
 * (stream/early-connects.ts): one, as over TCP, and one more, in which an idle server answers. A connection whose first
 * bytes come after the answer costs the server less.
 */
const EARLY_LOOKS = 2
/** Longest series of turns in one iteration. I/O that the kernel reports in this time is delayed by as much. */
const TURNS_MS = 0.1

let phase: IoPhase | undefined
let isStarted = false
/** The `lookCount` of the last request for a connection; `NEVER` if a turn has followed it. */
let askedAt = NEVER
let hasWaited = false
/** The `lookCount` at which the program may be notified of the last connection that it asked for. */
let notifiedAt = NEVER
/** The `lookCount` at which the last doorbell ran its turn in its own callback. */
let rungAt = NEVER
/**
 * A native stream of this file only. Each `emitEOF` calls `runStage` from native code, as libuv calls its callbacks:
 * Node runs ticks afterwards.
 */
let stage: NativeStream | undefined
/** The error thrown by the turn. `emitEOF` of Node 22 and later loses an error that an inner native frame has seen. */
let thrown: { readonly error: unknown } | undefined
/** The turn may run inside the next `runStage`. */
let mayTurn = false
let feed: (() => void) | undefined
const pending: (() => void)[] = []
/** The `lookCount` at which the first of `pending` was added. */
let pendingSince = NEVER

/** Idempotent. Without an I/O phase (no koffi, worker threads) turns stay immediates. */
export function openIoTurns(internals: NodeInternals): void {
  phase ??= openIoPhase(handlePhase)
  if (phase === undefined || stage !== undefined) return
  stage = new internals.JsStream()
  stage.onread = runStage
  eventLoop.scheduleBy(start, mayTurnNow)
}

/**
 * True if a doorbell may run the poller in its own callback, because nothing is due before. The iteration then has no
 * second turn: the program's immediates run before data that answers the first turn.
 */
function mayTurnNow(): boolean {
  const count = phase?.lookCount() ?? Number.NaN
  if (Number.isNaN(count) || pending.length > 0 || askedAt === count) return false
  rungAt = count
  return true
}

/** Runs `action` after the turn, without a native frame below it. False without an I/O phase. */
export function scheduleFeeding(action: () => void): boolean {
  if (phase === undefined) return false
  feed = action
  start()
  return true
}

/**
 * Runs `action`, such as the completion of a shutdown(2), after the I/O of this iteration or before that of the next
 * one, in both cases before immediates. Its ticks follow. libuv reports such completions later than the call that
 * causes them. Without an I/O phase `action` runs in a tick after the current callback.
 */
export function runAfterIo(action: () => void): void {
  if (phase === undefined) return queueMicrotask(() => nextTick(action))
  if (pending.length === 0) pendingSince = phase.lookCount()
  pending.push(action)
  start()
}

/**
 * Records a request for a connection, and returns the `lookCount` at which the program may be notified without an answer;
 * `NaN` if looks cannot be counted. A request made in an I/O callback, such as that of a name look-up, is answered only after
 * the event loop has looked for I/O once more: immediates run first, and the program may destroy the socket in one.
 */
export function noteAsked(): number {
  const now = lookCount()
  if (Number.isNaN(now)) return now
  askedAt = now
  notifiedAt = (now + EARLY_LOOKS) | 0
  return notifiedAt
}

/** How often the event loop has begun to look for I/O; `NaN` without an I/O phase, and in Node 20.0 to 20.2. */
export function lookCount(): number {
  return phase?.lookCount() ?? Number.NaN
}

/** The phase runs only while there is work. `isStarted` saves the native calls that start and stop it. */
function start(): void {
  if (isStarted) return
  isStarted = true
  phase?.start()
}

/**
 * libuv calls this after its poll phase. Runs several turns in one iteration, for at most `TURNS_MS`, while the event loop has
 * nothing else to do: an iteration would find no I/O, and takes longer than the answer of many a peer.
 */
function handlePhase(): void {
  let untilMs = Number.POSITIVE_INFINITY
  for (;;) {
    const hasTurn = eventLoop.isDue && (rungAt === NEVER || !wasRung()) && (askedAt === NEVER || !mustWait())
    if (hasTurn) hasWaited = false
    mayTurn = hasTurn
    if (mayTurn || pending.length > 0) enterStage()
    if (feed !== undefined) runFeed()
    mayTurn = false
    if (pending.length > 0) enterStage()
    if (!hasTurn || !eventLoop.awaitFrame(isTurnNext)) break
    const nowMs = performance.now()
    if (nowMs >= untilMs) break
    untilMs = Math.min(untilMs, nowMs + TURNS_MS)
  }
  if (eventLoop.isDue || feed !== undefined || pending.length > 0) return
  isStarted = false
  phase?.stop()
}

/** Never true twice in a row: a program that connects in each iteration still gets its answers. */
function mustWait(): boolean {
  hasWaited = !hasWaited && askedAt === phase?.lookCount()
  askedAt = NEVER
  return hasWaited
}

/** True if a doorbell has run the turn of this iteration in its callback. */
function wasRung(): boolean {
  const wasRung = rungAt === phase?.lookCount()
  rungAt = NEVER
  return wasRung
}

/**
 * True if nothing but the turn is due, as far as libuv can tell without asking the kernel. A connection that waits for a
 * look gets it at once.
 */
function isTurnNext(): boolean {
  if (!eventLoop.isDue || feed !== undefined || pending.length > 0 || askedAt !== NEVER) return false
  if (notifiedAt !== NEVER && ((lookCount() - notifiedAt) | 0) < 0) return false
  notifiedAt = NEVER
  return phase?.wouldWait() === true
}

/** Runs `runStage` below a native frame. */
function enterStage(): void {
  thrown = undefined
  try {
    stage?.emitEOF()
  } catch (error) {
    return report(error)
  }
  const lost = thrown as { readonly error: unknown } | undefined
  if (lost !== undefined) report(lost.error)
}

function runStage(): void {
  try {
    if (pending.length > 0 && pendingSince !== phase?.lookCount()) runPending()
    if (mayTurn) eventLoop.turn()
    if (pending.length > 0) runPending()
  } catch (error) {
    thrown = { error }
    throw error
  }
}

/**
 * Drains ticks after each action, as Node does after each callback of libuv. Actions added meanwhile wait for the
 * next call.
 */
function runPending(): void {
  for (let left = pending.length; left > 0; left--) {
    const action = pending.shift()
    // An action that runs the event loop itself has emptied `pending`.
    if (action === undefined) return
    action()
    drainTicks()
  }
}

function runFeed(): void {
  const due = feed as () => void
  feed = undefined
  try {
    due()
  } catch (error) {
    report(error)
  }
}

/**
 * Keeps errors out of libuv's frames. The program's handler gets the error at once, and Node clears the state of a tick
 * that threw. Without a handler an immediate throws the error again.
 */
function report(error: unknown): void {
  if (reportUncaught(error)) return
  setImmediate(() => {
    throw error
  })
}
