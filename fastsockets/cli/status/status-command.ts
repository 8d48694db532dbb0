/** `fastsockets status`: the sockets of this user's relinked processes, as `ss` shows them for TCP. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Command, InvalidArgumentError } from 'commander'
import type { ProcessStatus } from '../../status/decode-status.ts'
import { readAllStatus } from '../../status/read-status.ts'
import { TRANSPORTS } from '../../status/status-layout.ts'
import { OK } from '../exit-codes.ts'
import { exitOnInterrupt } from '../interrupts.ts'
import { parsePid } from '../parse-pid.ts'
import { type RatedProcess, withRates } from './rates.ts'
import { filterStatus, type StatusFilter } from './status-filter.ts'
import { renderStatus } from './status-table.ts'
import { renderTree } from './status-tree.ts'

const EXAMPLES = `
Examples:
  $ fastsockets status
  $ fastsockets status --watch         at once and then once a second, until Ctrl-C
  $ fastsockets status --watch 5 --json | jq .
  $ fastsockets status --pid 4711
  $ fastsockets status --program server.js --wire tcp   what is not fast there, and why
  $ fastsockets status --tree                           who talks to whom

The processes are not asked, and not stopped: what they count lies in memory that their own user may read.
TCP sockets are listed with the reason why they are not fast, their bytes counted once a second.

Exit code: 0, also if Ctrl-C ends --watch.`

/** Between the two readings from which the first report's rates come. */
const LOOK_MS = 250
const WIRES = TRANSPORTS.filter(name => name !== '')
const CLEAR_SCREEN = '\x1b[2J\x1b[H'

interface StatusOptions extends StatusFilter {
  readonly json?: boolean
  readonly tree?: boolean
  readonly watch?: number | true
}

export function statusCommand(): Command {
  return new Command('status')
    .description('what the relinked processes of this user are doing')
    .option('--json', 'print JSON; with --watch a line each time')
    .option('--watch [seconds]', 'again and again, until it is interrupted', parseSeconds)
    .option('--tree', 'who talks to whom: a line for each pair of programs')
    .option('--pid <pid>', 'one process only', parsePid)
    .option('--program <text>', 'programs whose path contains this')
    .option('--port <port>', 'listeners of this port, and connections from or to it', parsePort)
    .option('--wire <wire>', `connections over this wire: ${WIRES.join(', ')}`, parseWire)
    .addHelpText('after', EXAMPLES)
    .action(async ({ json = false, tree = false, watch, ...filter }: StatusOptions) => {
      const isWatching = watch !== undefined
      exitOnInterrupt(isWatching)
      const look = (): ProcessStatus[] =>
        filterStatus(
          readAllStatus().filter(({ pid }) => pid !== process.pid),
          filter,
        )
      const intervalMs = 1000 * (typeof watch === 'number' ? watch : 1)
      let pauseMs = Math.min(LOOK_MS, intervalMs)
      let before = look()
      do {
        const beforeMs = performance.now()
        await sleep(pauseMs)
        const now = look()
        const rated = withRates(now, before, performance.now() - beforeMs)
        print(rated, json, isWatching, tree ? renderTree(rated) : renderStatus(rated, filter))
        before = now
        pauseMs = intervalMs
      } while (isWatching)
      process.exitCode = OK
    })
}

function print(processes: readonly RatedProcess[], json: boolean, isWatching: boolean, text: string): void {
  if (json) return console.log(JSON.stringify(processes, undefined, isWatching ? undefined : 2))
  if (isWatching && process.stdout.isTTY) process.stdout.write(CLEAR_SCREEN)
  console.log(text)
}

function parseSeconds(text: string): number {
  const seconds = Number(text)
  if (seconds > 0 && seconds <= 3600) return seconds
  throw new InvalidArgumentError('it must be a number of seconds, at most 3600')
}

function parsePort(text: string): number {
  const port = Number(text)
  if (Number.isInteger(port) && port > 0 && port <= 0xffff) return port
  throw new InvalidArgumentError('it must be within 1..65535')
}

function parseWire(text: string): string {
  if ((WIRES as readonly string[]).includes(text)) return text
  throw new InvalidArgumentError(`it must be one of ${WIRES.join(', ')}`)
}
