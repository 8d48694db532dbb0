/** `fastsockets policy check`: whether a policy file is valid, and what it means. */
import { Command } from 'commander'
import { shownLines } from '../../../nic/shown-text.ts'
import { loadPolicy } from '../../policy/own-policy.ts'
import { PolicyError } from '../../policy/policy-error.ts'
import { readPolicyFile } from '../../policy/policy-file.ts'
import { readAllStatus } from '../../status/read-status.ts'
import { FAILURE, OK } from '../exit-codes.ts'
import { changesOf } from './against-running.ts'
import { describeOwnPolicy, describePolicy } from './describe-policy.ts'
import { policyWarnings } from './policy-warnings.ts'

const EXAMPLES = `
Examples:
  $ fastsockets policy check                  the policy that holds for programs of this user, and what says so
  $ fastsockets policy check ./policy.yaml    a file that is not in place yet
  $ fastsockets policy check ./policy.yaml --against-running    what it would change of the processes that run

Warnings name rules that never decide. They do not change the exit code.

Exit codes: 0 it is right, or there is none; 1 it is wrong, and every line that is wrong is named.`

export function policyCommand(): Command {
  const check = new Command('check')
    .description('check the policy file')
    .argument('[file]', 'by default the one that holds')
    .option('--against-running', 'list what it would change of the relinked processes of this user')
    .addHelpText('after', EXAMPLES)
    .action((file: string | undefined, { againstRunning = false }: { againstRunning?: boolean }) => {
      process.exitCode = checkPolicy(file, againstRunning)
    })
  return new Command('policy')
    .description('which programs and ports must be fast, may be, or must not')
    .addCommand(check)
    .addHelpText('after', EXAMPLES)
}

function checkPolicy(file: string | undefined, againstRunning: boolean): number {
  try {
    const policy = file === undefined ? loadPolicy() : readPolicyFile(file)
    console.log(shownLines(file === undefined ? describeOwnPolicy() : [describePolicy(policy)]))
    const warnings = policyWarnings(policy)
    if (warnings.length > 0) console.error(shownLines(warnings.map(warning => `warning: ${warning}`)))
    if (againstRunning) {
      const changes = changesOf(policy, readAllStatus())
      console.log(shownLines(changes.length === 0 ? ['It changes nothing of what runs.'] : changes))
    }
    return OK
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error
    console.error(error.message)
    return FAILURE
  }
}
