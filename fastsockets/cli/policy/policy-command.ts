/** `fastsockets policy check`: whether a policy file is right, and what it says. */
import { Command } from 'commander'
import { loadPolicy } from '../../policy/own-policy.ts'
import type { Policy } from '../../policy/policy.ts'
import { findPolicyFile, PolicyError, readPolicyFile } from '../../policy/policy-file.ts'
import { FAILURE, OK } from '../exit-codes.ts'

const EXAMPLES = `
Examples:
  $ fastsockets policy check                  the policy that holds for programs of this user
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
  const path = file ?? findPolicyFile()
  try {
    const policy = file === undefined ? loadPolicy() : readPolicyFile(file)
    console.log(path === undefined ? 'There is no policy file: whatever can be fast is.' : describe(policy))
    return OK
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error
    console.error(error.message)
    return FAILURE
  }
}

function describe({ source, ruleCount, users, drivers }: Policy): string {
  const rules = ruleCount === 1 ? '1 rule' : `${ruleCount} rules`
  const others = users.length === 0 ? 'only the own user' : `the own user and ${users.join(', ')}`
  const allowed = drivers?.length === 0 ? 'none' : (drivers?.join(', ') ?? 'all')
  return `${source}: ${rules}; users: ${others}; drivers: ${allowed}`
}
