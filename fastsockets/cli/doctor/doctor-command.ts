/** `fastsockets doctor`: whether this machine can do shared memory, and why not. */
import { Command } from 'commander'
import { FAILURE, OK } from '../exit-codes.ts'
import { exitOnInterrupt } from '../interrupts.ts'
import type { Check } from './check.ts'
import { liveCheck } from './live-check.ts'
import { machineChecks } from './machine-checks.ts'
import { nodeChecks } from './node-checks.ts'

const EXAMPLES = `
Examples:
  $ fastsockets doctor
  $ fastsockets doctor --json

Exit codes: 0 relinked programs of this machine talk through shared memory, 1 they do not (everything
still works, over TCP).`

interface DoctorOptions {
  readonly json?: boolean
}

export function doctorCommand(): Command {
  return new Command('doctor')
    .description('find out whether this machine can do shared memory, and why not')
    .option('--json', 'print the findings as JSON')
    .addHelpText('after', EXAMPLES)
    .action(async (options: DoctorOptions) => {
      exitOnInterrupt()
      const live = await liveCheck()
      const checks = [...nodeChecks(), ...machineChecks(), live]
      const isFast = live.state === 'ok'
      if (options.json) console.log(JSON.stringify({ isFast, checks }, undefined, 2))
      else printReport(checks, isFast)
      process.exitCode = isFast ? OK : FAILURE
    })
}

function printReport(checks: readonly Check[], isFast: boolean): void {
  const nameWidth = Math.max(...checks.map(({ name }) => name.length))
  for (const { state, name, detail, hint } of checks) {
    console.log(`${state.padEnd(6)}  ${name.padEnd(nameWidth)}  ${detail}`)
    if (hint !== undefined) console.log(`${''.padEnd(6 + 2 + nameWidth + 2)}-> ${hint}`)
  }
  console.log()
  console.log(
    isFast
      ? 'The fast way works: relinked programs of this machine talk through shared memory.'
      : 'The fast way does not work here. Relinked programs work all the same, over TCP.',
  )
}
