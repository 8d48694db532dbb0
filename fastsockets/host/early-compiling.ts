/**
 * How soon V8 compiles what runs often.
 *
 * It counts for each function, and is patient: a function must run some thousand times. What a message or a connection runs
 * through is a hundred functions, and until they are compiled each costs ten times as much. So while the first messages
 * come V8 is impatient. See docs/decisions/0110-early-compiling.md.
 */
import { pollerStats } from '../../am/index.ts'
import { clearInterval, setInterval } from '../../nic/real-time.ts'
import { mayChange, setOption } from './v8-options.ts'

/** So many messages are handled, and what they run through is compiled. */
const MESSAGES = 10_000
/** With less than so many in that time a program does something else, for which V8 is to be as patient as ever. */
const LOOK_MS = 1000
const LOOK_MESSAGES = 25
/** Of a process, in all: twice what programs took to become warm where each had the eighth of a core. */
const LOOKS = 20

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
/** Handled when somebody looked last. */
let messages = 0
/** Another peer was found since then. */
let hasJoined = false

/** A peer is found, and its messages are handled by the event loop. */
export function compileEarly(): void {
  if (watch !== undefined) {
    hasJoined = true
    return
  }
  ;({ messages } = pollerStats())
  if (patience.length === 0 || messages >= MESSAGES || looksLeft === 0) return
  for (const { option, eager } of patience) setOption(option, eager)
  watch = setInterval(look, LOOK_MS).unref()
}

function look(): void {
  const before = messages
  ;({ messages } = pollerStats())
  looksLeft--
  const isWanted = hasJoined || messages - before >= LOOK_MESSAGES
  hasJoined = false
  if (isWanted && messages < MESSAGES && looksLeft > 0) return
  for (const { option, usual } of patience) setOption(option, usual)
  clearInterval(watch)
  watch = undefined
}

/** How often a function must run, and how often since it last saw something new. */
function invocations(): readonly Patience[] {
  return [
    { option: '--invocation-count-for-turbofan', eager: 500, usual: 3000 },
    { option: '--minimum-invocations-after-ic-update', eager: 100, usual: 500 },
  ]
}
