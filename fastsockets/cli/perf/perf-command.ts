/**
 * `fastsockets perf`: round trips, rates and connections between two hosts or processes, as sockperf and
 * ucx_perftest.
 */
import { Command, InvalidArgumentError, Option } from 'commander'
import { OK } from '../exit-codes.ts'
import { type HostPort, parseHostPort, parseListening } from '../host-port.ts'
import { exitOnInterrupt } from '../interrupts.ts'
import type { PerfError } from './errors.ts'
import { openNetServer } from './net-perf-server.ts'
import { type PerfTransport, TRANSPORTS } from './perf-layout.ts'
import { describeReport, PERF_TESTS, type PerfTest } from './perf-report.ts'
import { type PerfOptions, runPerf } from './perf-run.ts'
import { openRawServer } from './raw-perf-server.ts'

const SIZE_MAX = 64 * 1024 * 1024
const SECONDS_MAX = 3600
const SECONDS = 3
const COUNT_MAX = 1e9
/** Of the seconds that are measured. */
const WARM_UP_SHARE = 0.25

interface TestOptions
  extends Partial<Pick<PerfOptions, 'transport' | 'poll' | 'size' | 'seconds' | 'count'>> {
  readonly warmUp?: number
  readonly json?: boolean
}

const EXAMPLES = `
Examples:
  $ fastsockets perf server 0.0.0.0:7000                 on one host, until Ctrl-C
  $ fastsockets perf ping-pong host1:7000                on the other, or on the same one
  $ fastsockets perf ping-pong host1:7000 --poll         both sides look in a loop, and keep a core each busy
  $ fastsockets perf throughput host1:7000 --size 65536 --json
  $ fastsockets perf ping-pong host1:7000 --count 100000 --warm-up 1       so many round trips, whatever they take
  $ fastsockets perf server 7001 --transport net         as programs of node:net; do the same for the client
  $ FASTSOCKETS_DISABLE=1 fastsockets perf connect localhost:7001 --transport net       the same over TCP

The report says which wire was used, and if it was TCP, why not a faster one.

Exit codes: 0 it was measured, or a server was ended by Ctrl-C; 1 it could not be measured, 2 this is not how
the command is used.`

const TEST_DESCRIPTIONS: Readonly<Record<PerfTest, string>> = {
  'ping-pong': 'messages there and back, one at a time: the time of a round trip',
  throughput: 'messages one way: the rate at which they arrive',
  connect: 'connections, one after the other, up to the first bytes from the server',
}

const COUNTED: Readonly<Record<PerfTest, string>> = {
  'ping-pong': 'round trips',
  throughput: 'messages of --size bytes',
  connect: 'connections',
}

export function perfCommand(): Command {
  const perf = new Command('perf')
    .description('measures round trips, rates and connections between two hosts or processes')
    .addHelpText('after', EXAMPLES)
  perf.addCommand(serverCommand())
  for (const test of PERF_TESTS) perf.addCommand(testCommand(test))
  return perf
}

function serverCommand(): Command {
  return new Command('server')
    .description('serves the others, until it is interrupted')
    .argument('<host:port>', 'where to listen; port 0 lets the system choose one', parseListening)
    .addOption(transportOption())
    .option('--json', 'say where it listens as JSON')
    .action(async (where: HostPort, { transport, json }: { transport: PerfTransport; json?: boolean }) => {
      exitOnInterrupt(true)
      const { port } = await (transport === 'raw' ? openRawServer(where) : openNetServer(where))
      const { host } = where
      console.log(
        json
          ? JSON.stringify({ host, port, transport })
          : `listening at ${host}, port ${port} (${transport})`,
      )
    })
}

function testCommand(test: PerfTest): Command {
  const command = new Command(test)
    .description(TEST_DESCRIPTIONS[test])
    .argument('<host:port>', 'a fastsockets perf server', parseHostPort)
    .addOption(transportOption())
    .option('--seconds <seconds>', 'how long to measure', parseSeconds, SECONDS)
    .addOption(
      new Option('--count <number>', `how many ${COUNTED[test]} to measure, instead of a time`)
        .argParser(parseCount)
        .conflicts('seconds'),
    )
    .option(
      '--warm-up <seconds>',
      'how long before that; 0 for not at all (default: a quarter of --seconds)',
      parseWarmUp,
    )
    .option('--json', 'print the report as JSON')
  if (test !== 'connect') {
    command
      .option('--size <bytes>', 'bytes of a message', parseSize, test === 'ping-pong' ? 64 : 65_536)
      .option('--poll', 'look in a loop instead of waiting, on both sides; raw only')
  }
  return command.action(async (target: HostPort, options: TestOptions) => {
    const { transport = 'raw', poll = false, size = 1, seconds = SECONDS, count, json } = options
    if (poll && transport !== 'raw') command.error('error: --poll needs --transport raw')
    const warmUpSeconds = options.warmUp ?? WARM_UP_SHARE * seconds
    const run = { transport, poll, size, seconds, warmUpSeconds, ...(count !== undefined && { count }) }
    const report = await runPerf(test, target, run).catch((error: unknown) => {
      // The kind of the server is known only from its HELLO.
      if ((error as PerfError).code === 'ERR_PERF_NO_POLL')
        command.error(`error: ${(error as Error).message}`)
      throw error
    })
    console.log(json ? JSON.stringify(report, undefined, 2) : describeReport(report))
    // Channels and servers of this process would keep it alive for a moment.
    process.exitCode = OK
  })
}

function transportOption(): Option {
  return new Option('--transport <transport>', 'raw sockets, or those of node:net, relinked')
    .choices(TRANSPORTS)
    .default('raw')
}

function parseSize(text: string): number {
  const size = Number(text)
  if (Number.isInteger(size) && size >= 1 && size <= SIZE_MAX) return size
  throw new InvalidArgumentError(`it must be a number of bytes from 1 to ${SIZE_MAX}`)
}

function parseSeconds(text: string): number {
  const seconds = Number(text)
  if (seconds > 0 && seconds <= SECONDS_MAX) return seconds
  throw new InvalidArgumentError(`it must be a number of seconds, at most ${SECONDS_MAX}`)
}

function parseWarmUp(text: string): number {
  const seconds = Number(text)
  if (text.trim() !== '' && seconds >= 0 && seconds <= SECONDS_MAX) return seconds
  throw new InvalidArgumentError(`it must be a number of seconds from 0 to ${SECONDS_MAX}`)
}

function parseCount(text: string): number {
  const count = Number(text)
  if (Number.isInteger(count) && count >= 1 && count <= COUNT_MAX) return count
  throw new InvalidArgumentError(`it must be a whole number from 1 to ${COUNT_MAX}`)
}
