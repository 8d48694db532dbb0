/** `fastsockets status`: the sockets of this user's relinked processes, as `ss` shows them for TCP. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Command, InvalidArgumentError } from 'commander'
import { type ProcessStatus, readAllStatus } from '../../status/read-status.ts'
import { OK } from '../exit-codes.ts'
import { exitOnInterrupt } from '../interrupts.ts'
import { type RatedProcess, withRates } from './rates.ts'
import { renderStatus } from './status-table.ts'

const EXAMPLES = `
Examples:
  $ fastsockets status
  $ fastsockets status --watch         at once and then once a second, until Ctrl-C
  $ fastsockets status --watch 5 --json | jq .
  $ fastsockets status --pid 4711

The processes are not asked, and not stopped: what they count lies in memory that their own user may read.
TCP sockets are listed with the reason why they are not fast, their bytes counted once a second.

Exit code: 0, also if Ctrl-C ends --watch.`

/** Between the two readings from which the first report's rates come. */
const LOOK_MS = 250
const CLEAR_SCREEN = '\x1b[2J\x1b[H'

interface StatusOptions {
  readonly json?: boolean
  readonly watch?: number | true
  readonly pid?: number
}

export function statusCommand(): Command {
  return new Command('status')
    .description('what the relinked processes of this user are doing')
    .option('--json', 'print JSON; with --watch a line each time')
    .option('--watch [seconds]', 'again and again, until it is interrupted', parseSeconds)
    .option('--pid <pid>', 'one process only', parsePid)
    .addHelpText('after', EXAMPLES)
    .action(async ({ json = false, watch, pid }: StatusOptions) => {
      const isWatching = watch !== undefined
      exitOnInterrupt(isWatching)
      const look = (): ProcessStatus[] =>
        readAllStatus().filter(
          status => status.pid !== process.pid && (pid === undefined || status.pid === pid),
        )
      const intervalMs = 1000 * (typeof watch === 'number' ? watch : 1)
      let pauseMs = Math.min(LOOK_MS, intervalMs)
      let before = look()
      do {
        const beforeMs = performance.now()
        await sleep(pauseMs)
        const now = look()
        const rated = withRates(now, before, performance.now() - beforeMs)
        print(rated, json, isWatching, pid)
        before = now
        pauseMs = intervalMs
      } while (isWatching)
      process.exitCode = OK
    })
}

function print(
  processes: readonly RatedProcess[],
  json: boolean,
  isWatching: boolean,
  pid: number | undefined,
): void {
  if (json) return console.log(JSON.stringify(processes, undefined, isWatching ? undefined : 2))
  if (isWatching && process.stdout.isTTY) process.stdout.write(CLEAR_SCREEN)
  console.log(renderStatus(processes, pid))
}

function parseSeconds(text: string): number {
  const seconds = Number(text)
  if (seconds > 0 && seconds <= 3600) return seconds
  throw new InvalidArgumentError('it must be a number of seconds, at most 3600')
}

function parsePid(text: string): number {
  const pid = Number(text)
  if (Number.isInteger(pid) && pid > 0) return pid
  throw new InvalidArgumentError('it must be the number of a process')
}
