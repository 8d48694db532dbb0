/**
 * Our turns of the event loop come after its I/O and before its immediates, where libuv would tell of sockets.
 *
 * Node promises that an immediate which a program sets while it hears of I/O runs before any timer and any other I/O.
 * Below an immediate of ours that would not hold. See docs/decisions/0092-io-turns.md.
 */
import { awaitWork, scheduleTurnsBy } from '../../am/index.ts'
import { type IoPhase, openIoPhase } from '../../nic/index.ts'
import { nextTick, performance, queueMicrotask, setImmediate } from '../../nic/real-time.ts'
import { drainTicks, type NativeStream, type NodeInternals, tellUncaught } from './node-internals.ts'
import { raiseStackLimit, restoreStackLimit } from './stack-limit.ts'

const NEVER = -1
/** So long turns may follow each other while the event loop has nothing else to do. What the kernel has meanwhile waits as long. */
const TURNS_MS = 0.1

let phase: IoPhase | undefined
let isStarted = false
/** When somebody asked for a connection last, as `lookCount` counts; `NEVER` if a turn has come since. */
let askedAt = NEVER
let hasWaited = false
/** When a doorbell's turn was had there and then last, as `lookCount` counts. */
let heardAt = NEVER
/**
 * A native stream that nobody has, whose end is told again and again: whom it calls runs as what libuv calls does, with
 * native code below, and its ticks after it.
 */
let stage: NativeStream | undefined
/** What came out of the turn: native code of Node 22 and later loses it if native code further up heard of it before. */
let thrown: { readonly error: unknown } | undefined
let turn: (() => void) | undefined
/** It has its turn now. */
let mayTurn = false
let feed: (() => void) | undefined
const pending: (() => void)[] = []
/** When the first of them was asked for, as `lookCount` counts. */
let pendingSince = NEVER

/** Once is enough. Where the event loop cannot be had this way, turns stay immediates. */
export function openIoTurns(internals: NodeInternals): void {
  phase ??= openIoPhase(runAll)
  if (phase === undefined || stage !== undefined) return
  stage = new internals.JsStream()
  stage.onread = runStage
  scheduleTurnsBy(scheduleTurn, mayTurnNow)
}

function scheduleTurn(next: () => void): void {
  turn = next
  start()
}

/**
 * While libuv tells of a doorbell, which is I/O as any other: if nothing is due before. Then there is no second turn before
 * the immediates, which come before what the peer answers to the first.
 */
function mayTurnNow(): boolean {
  const count = phase?.lookCount() ?? Number.NaN
  if (Number.isNaN(count) || pending.length > 0 || askedAt === count) return false
  heardAt = count
  return true
}

/** `action` runs with no native code below it, after the turn. False where there is no such thing. */
export function scheduleFeeding(action: () => void): boolean {
  if (phase === undefined) return false
  feed = action
  start()
  return true
}

/**
 * What libuv does not tell from within the call that caused it, as that a shutdown(2) is done: `action` runs after the I/O of
 * this turn, or before that of the next, and in both cases before immediates. Its ticks run after it. Where turns are immediates it
 * runs when what the program does now is over.
 */
export function runAfterIo(action: () => void): void {
  if (phase === undefined) return queueMicrotask(() => nextTick(action))
  if (pending.length === 0) pendingSince = phase.lookCount()
  pending.push(action)
  start()
}

/**
 * A connection is asked for. If that happens while libuv tells of I/O, as it does once a name is found, the event loop must
 * look for I/O once more before anybody hears of it: immediates come first, in one of which the program may give up.
 * Returns when that was, as `lookCount` counts.
 */
export function noteAsked(): number {
  const now = lookCount()
  askedAt = Number.isNaN(now) ? NEVER : now
  return now
}

/** How often the event loop has begun to look for I/O. `NaN` where that cannot be known. */
export function lookCount(): number {
  return phase?.lookCount() ?? Number.NaN
}

/** Not twice in a row: who asks in each turn of the event loop must not keep the answers away. */
function mustWait(): boolean {
  hasWaited = !hasWaited && askedAt !== NEVER && askedAt === phase?.lookCount()
  askedAt = NEVER
  return hasWaited
}

/** In this turn of the event loop, by a doorbell. */
function wasHeard(): boolean {
  const wasHeard = heardAt !== NEVER && heardAt === phase?.lookCount()
  heardAt = NEVER
  return wasHeard
}

/** Stopped when there was nothing to do: to start and to stop it are calls of native code. */
function start(): void {
  if (isStarted) return
  isStarted = true
  phase?.start()
}

/**
 * Turns follow each other, as if the event loop had gone around between them, while it has nothing else to do: it finds
 * nothing there, but takes longer than many a peer to answer.
 */
function runAll(): void {
  raiseStackLimit()
  let untilMs = Number.POSITIVE_INFINITY
  while (runOnce() && awaitWork(isTurnNext)) {
    const nowMs = performance.now()
    if (nowMs >= untilMs) break
    untilMs = Math.min(untilMs, nowMs + TURNS_MS)
  }
  restoreStackLimit()
  if (turn !== undefined || feed !== undefined || pending.length > 0) return
  isStarted = false
  phase?.stop()
}

/** Nothing else is due, as far as the event loop can tell without asking the kernel. */
function isTurnNext(): boolean {
  if (turn === undefined || feed !== undefined || pending.length > 0) return false
  return askedAt === NEVER && phase?.wouldWait() === true
}

/** Whether it was a turn's. */
function runOnce(): boolean {
  mayTurn = turn !== undefined && !wasHeard() && !mustWait()
  if (mayTurn || pending.length > 0) runGuarded(tellStage)
  if (feed !== undefined) runGuarded(runFeed)
  const hasTurned = mayTurn
  mayTurn = false
  if (pending.length > 0) runGuarded(tellStage)
  return hasTurned
}

function tellStage(): void {
  thrown = undefined
  stage?.emitEOF()
  rethrow()
}

function rethrow(): void {
  if (thrown !== undefined) throw thrown.error
}

function runStage(): void {
  try {
    if (pending.length > 0 && pendingSince !== phase?.lookCount()) runPending()
    if (mayTurn) runTurn()
    runPending()
  } catch (error) {
    thrown = { error }
    throw error
  }
}

/** Each with its ticks, as if libuv had called it by itself. Those that they ask for come with the next. */
function runPending(): void {
  for (let left = pending.length; left > 0; left--) {
    const action = pending.shift()
    // A program may have run the event loop from within one of them.
    if (action === undefined) return
    action()
    drainTicks()
  }
}

function runTurn(): void {
  const due = turn as () => void
  turn = undefined
  due()
}

function runFeed(): void {
  const due = feed as () => void
  feed = undefined
  due()
}

/** Nothing may be thrown into libuv. Whoever handles it hears of it now, and Node clears what a tick that threw has left. */
function runGuarded(action: () => void): void {
  try {
    action()
  } catch (error) {
    if (tellUncaught(error)) return
    setImmediate(() => {
      throw error
    })
  }
}
