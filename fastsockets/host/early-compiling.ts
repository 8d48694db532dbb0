/**
 * How soon V8 compiles what runs often.
 *
 * It counts for each function, and is patient: a function must run some thousand times. What a message or a connection runs
 * through is a hundred functions, and until they are compiled each costs ten times as much. So while the first messages
 * come V8 is impatient, in programs that need the core: where messages come seldom, to compile costs more than it saves. Not for
 * good: a program that runs through much code once, as the TypeScript compiler does, loses 15 % by it.
 */
import { pollerStats } from '../../am/index.ts'
import { readCoreTimes } from '../../nic/index.ts'
import { clearInterval, performance, setInterval } from '../../nic/real-time.ts'
import { mayChange, setOption } from './v8-options.ts'

/** So many messages are handled, and what they run through is compiled. */
const MESSAGES = 10_000
const LOOK_MS = 100
/** Looks in which messages were found, of a process, in all: twice what programs took to become warm with the eighth of a core. */
const LOOKS = 200
/** With so many looks in a row that find no message the program does something else; the next peer begins anew. */
const QUIET_LOOKS_MAX = 10
/** V8 is impatient while the thread runs, or waits for a core, for this part of the time. */
const BUSY_SHARE = 0.25

interface Patience {
  readonly option: string
  readonly eager: number
  /** V8's own. */
  readonly usual: number
}

/** By the version of V8. Others are left alone: whoever does not know an option prints an error. */
const PATIENCE: Readonly<Record<string, readonly Patience[]>> = {
  // Node 20. Bytes of bytecode that are run.
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
/** Handled when somebody looked last. */
let messages = 0
/** When somebody looked last, and how long the thread had been runnable by then. */
let lookedAtMs = 0
let runnableMs = 0
let isEager = false

/** A peer is found, and its messages are handled by the event loop. */
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

/** Whether the thread has needed a core since the last call. */
function isBusy(): boolean {
  const nowMs = performance.now()
  const passedMs = nowMs - lookedAtMs
  const before = runnableMs
  runnableMs = readRunnableMs()
  lookedAtMs = nowMs
  return runnableMs - before >= BUSY_SHARE * passedMs
}

/** On a core or waiting for one; where the system does not say, on a core, with all threads of the process. */
function readRunnableMs(): number {
  const times = readCoreTimes()
  if (typeof times === 'object') return times.ranMs + times.waitedMs
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

/** How often a function must run, and how often since it last saw something new. */
function invocations(): readonly Patience[] {
  return [
    { option: '--invocation-count-for-turbofan', eager: 500, usual: 3000 },
    { option: '--minimum-invocations-after-ic-update', eager: 100, usual: 500 },
  ]
}
