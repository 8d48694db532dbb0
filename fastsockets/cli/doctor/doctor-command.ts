/** `fastsockets doctor`: whether this machine can use shared memory, and if not why. */
import { Command } from 'commander'
import { shownJson, shownText } from '../../../nic/shown-text.ts'
import { FAILURE, OK } from '../exit-codes.ts'
import { type HostPort, parseHostPort } from '../host-port.ts'
import { exitOnInterrupt } from '../interrupts.ts'
import type { Check } from './check.ts'
import { deviceCheck } from './device-check.ts'
import { driverChecks } from './driver-checks.ts'
import { liveCheck } from './live-check.ts'
import { machineChecks } from './machine-checks.ts'
import { nodeChecks } from './node-checks.ts'
import { pairChecks } from './pair-checks.ts'
import { policyCheck } from './policy-check.ts'

const EXAMPLES = `
Examples:
  $ fastsockets doctor
  $ fastsockets doctor --json
  $ fastsockets doctor localhost:8080    the same, and whether a connection to this server would be fast

Exit codes: 0 relinked programs of this machine talk through shared memory, 1 they do not (everything
still works, over TCP). What is wrong with a device between hosts is shown, and does not count.`

interface DoctorOptions {
  readonly json?: boolean
}

export function doctorCommand(): Command {
  return new Command('doctor')
    .description('check whether this machine can use shared memory, and if not why')
    .argument('[host:port]', 'a server: would a connection to it be fast, and why', parseHostPort)
    .option('--json', 'print the findings as JSON')
    .addHelpText('after', EXAMPLES)
    .action(async (target: HostPort | undefined, options: DoctorOptions) => {
      exitOnInterrupt()
      const live = await liveCheck()
      const device = await deviceCheck()
      const pair = target === undefined ? [] : await pairChecks(target)
      const machine = [...nodeChecks(), ...driverChecks(), ...machineChecks(), policyCheck()]
      const checks = [...machine, live, ...device, ...pair]
      const isFast = live.state === 'ok' && (target === undefined || pair.some(({ state }) => state === 'ok'))
      if (options.json) console.log(shownJson({ isFast, checks }, 2))
      else printReport(checks, isFast, target)
      process.exitCode = isFast ? OK : FAILURE
    })
}

function printReport(checks: readonly Check[], isFast: boolean, target: HostPort | undefined): void {
  const nameWidth = Math.max(...checks.map(({ name }) => name.length))
  for (const { state, name, detail, hint } of checks) {
    console.log(`${state.padEnd(6)}  ${name.padEnd(nameWidth)}  ${shownText(detail)}`)
    if (hint !== undefined) console.log(`${''.padEnd(6 + 2 + nameWidth + 2)}-> ${shownText(hint)}`)
  }
  console.log()
  console.log(shownText(target === undefined ? verdict(isFast) : pairVerdict(isFast, target)))
}

function verdict(isFast: boolean): string {
  return isFast
    ? 'The fast way works: relinked programs of this machine talk through shared memory.'
    : 'The fast way does not work here. Relinked programs work all the same, over TCP.'
}

function pairVerdict(isFast: boolean, { host, port }: HostPort): string {
  const pair = `a relinked program of this user and the server at ${host} port ${port}`
  return isFast ? `The fast way works between ${pair}.` : `The fast way does not work between ${pair}.`
}
