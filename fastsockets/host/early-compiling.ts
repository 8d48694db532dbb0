/**
 * Makes V8 optimize hot functions earlier while the first messages of a program are handled.
 *
 * V8 optimizes a function after some thousand calls. A message or a connection runs through a hundred functions, and
 * each costs ten times as much until V8 has compiled it. The lower threshold holds only while the thread is busy:
 * where messages are rare, compiling costs more than it saves. The threshold is restored afterwards: a program that
 * runs much code once, as the TypeScript compiler does, would lose 15 %.
 */
import { pollerStats } from '../../am/index.ts'
import { readCoreTimes } from '../../nic/index.ts'
import { clearInterval, performance, setInterval } from '../../nic/real-time.ts'
import { mayChange, setOption } from './v8-options.ts'

/** After this many messages their functions are compiled. */
const MESSAGES = 10_000
const LOOK_MS = 100
/** Looks that find messages, per process: twice as many as a program needs to become warm on an eighth of a core. */
const LOOKS = 200
/** After this many looks in a row without a message, looking ends; the next peer starts it again. */
const QUIET_LOOKS_MAX = 10
/** The thread is busy if it runs or waits for a core for at least this part of the time. */
const BUSY_SHARE = 0.25

interface Patience {
  readonly option: string
  readonly eager: number
  /** V8's default. */
  readonly usual: number
}

/** By the version of V8. Other versions keep their thresholds: V8 prints an error for an unknown option. */
const PATIENCE: Readonly<Record<string, readonly Patience[]>> = {
  // Node 20. The unit is bytes of executed bytecode.
  '11.3': [{ option: '--interrupt-budget', eager: 8192, usual: 67_584 }],
  // Node 22, 24 and 26.
  '12.4': invocations(),
  '13.6': invocations(),
  '14.6': invocations(),
}

const [major, minor] = process.versions.v8.split('.')
const patience = (PATIENCE[`${major}.${minor}`] ?? []).filter(({ option }) => mayChange(option))
let watch: NodeJS.Timeout | undefined
let looksLeft = LOOKS
let quietLooks = 0
/** Messages handled up to the last look. */
let messages = 0
/** Time of the last look, and how long the thread had been runnable by then. */
let lookedAtMs = 0
let runnableMs = 0
let isEager = false

/** Call when a peer is connected whose messages the event loop handles. */
export function compileEarly(): void {
  quietLooks = 0
  if (watch !== undefined) return
  ;({ messages } = pollerStats())
  if (patience.length === 0 || messages >= MESSAGES || looksLeft === 0) return
  setEager(true)
  isBusy()
  watch = setInterval(look, LOOK_MS).unref()
}

function look(): void {
  const before = messages
  ;({ messages } = pollerStats())
  const isQuiet = messages === before
  quietLooks = isQuiet ? quietLooks + 1 : 0
  if (!isQuiet) looksLeft--
  const isOver = messages >= MESSAGES || looksLeft === 0 || quietLooks === QUIET_LOOKS_MAX
  setEager(isBusy() && !isQuiet && !isOver)
  if (!isOver) return
  clearInterval(watch)
  watch = undefined
}

function setEager(isWanted: boolean): void {
  if (isWanted === isEager) return
  isEager = isWanted
  for (const { option, eager, usual } of patience) setOption(option, isEager ? eager : usual)
}

/** True if the thread was runnable for `BUSY_SHARE` of the time since the last call. */
function isBusy(): boolean {
  const nowMs = performance.now()
  const passedMs = nowMs - lookedAtMs
  const before = runnableMs
  runnableMs = readRunnableMs()
  lookedAtMs = nowMs
  return runnableMs - before >= BUSY_SHARE * passedMs
}

/** Time on a core or waiting for one. If the kernel does not report it: CPU time of all threads. */
function readRunnableMs(): number {
  const times = readCoreTimes()
  if (typeof times === 'object') return times.ranMs + times.waitedMs
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

/** Calls before V8 optimizes a function: in all, and since its inline caches last changed. */
function invocations(): readonly Patience[] {
  return [
    { option: '--invocation-count-for-turbofan', eager: 500, usual: 3000 },
    { option: '--minimum-invocations-after-ic-update', eager: 100, usual: 500 },
  ]
}
