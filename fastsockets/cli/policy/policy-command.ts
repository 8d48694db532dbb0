/** `fastsockets policy check`: whether a policy file is valid, and what it means. */
import { Command } from 'commander'
import { shownLines } from '../../../nic/shown-text.ts'
import { PolicyError } from '../../policy/policy-error.ts'
import { readPolicyFile } from '../../policy/policy-file.ts'
import { FAILURE, OK } from '../exit-codes.ts'
import { describeOwnPolicy, describePolicy } from './describe-policy.ts'

const EXAMPLES = `
Examples:
  $ fastsockets policy check                  the policy that holds for programs of this user, and what says so
  $ fastsockets policy check ./policy.yaml    a file that is not in place yet

Exit codes: 0 it is right, or there is none; 1 it is wrong, and every line that is wrong is named.`

export function policyCommand(): Command {
  const check = new Command('check')
    .description('check the policy file')
    .argument('[file]', 'by default the one that holds')
    .addHelpText('after', EXAMPLES)
    .action((file: string | undefined) => {
      process.exitCode = checkPolicy(file)
    })
  return new Command('policy')
    .description('which programs and ports must be fast, may be, or must not')
    .addCommand(check)
    .addHelpText('after', EXAMPLES)
}

function checkPolicy(file: string | undefined): number {
  try {
    const lines = file === undefined ? describeOwnPolicy() : [describePolicy(readPolicyFile(file))]
    console.log(shownLines(lines))
    return OK
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error
    console.error(error.message)
    return FAILURE
  }
}
