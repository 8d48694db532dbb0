import { DISABLE_VARIABLE, isDisabled } from '../../host/environment.ts'
import { findPolicyFile, POLICY_VARIABLE } from '../../policy/find-policy.ts'
import {
  allowsPeerMemory,
  DRIVERS_VARIABLE,
  loadPolicy,
  USE_VARIABLE,
  USERS_VARIABLE,
  ZCOPY_VARIABLE,
} from '../../policy/own-policy.ts'
import { NO_POLICY, type Policy } from '../../policy/policy.ts'
import { readPolicyFile } from '../../policy/policy-file.ts'

/** The effect of each variable that is set. */
const EFFECTS: Readonly<Record<string, string>> = {
  [POLICY_VARIABLE]: 'names the file',
  [USE_VARIABLE]: 'holds in place of rules and default',
  [USERS_VARIABLE]: 'holds in place of users',
  [DRIVERS_VARIABLE]: 'holds in place of drivers',
  [ZCOPY_VARIABLE]: 'holds in place of zcopy',
  [DISABLE_VARIABLE]: 'goes over all of it: nothing is fast',
}

/** The policy that holds for programs of this user, in lines for people. Throws a `PolicyError`. */
export function describeOwnPolicy(): string[] {
  const policy = loadPolicy()
  const path = findPolicyFile()
  const file = path === undefined ? NO_POLICY : readPolicyFile(path)
  const effects = Object.entries(EFFECTS).flatMap(([name, effect]) => {
    const value = process.env[name]
    return value && (name !== DISABLE_VARIABLE || isDisabled()) ? [`${name}=${value} ${effect}.`] : []
  })
  if (path === undefined && effects.length === 0)
    return ['There is no policy file: every connection that can be accelerated is.']
  const rules = policy.ruleCount < file.ruleCount ? `${count(file)}, of which none holds` : count(policy)
  return [describe(policy, rules, allowsPeerMemory(policy)), ...effects]
}

/** The contents of one file. */
export function describePolicy(policy: Policy): string {
  return describe(policy, count(policy), policy.zcopy)
}

function describe(
  { source, default: { use, because }, users, drivers, settings: { keyFile, rendezvous } }: Policy,
  rules: string,
  zcopy: boolean,
): string {
  const others = users.length === 0 ? 'only the own user' : `the own user and ${users.join(', ')}`
  const allowed = drivers?.length === 0 ? 'none' : (drivers?.join(', ') ?? 'all')
  const memory = zcopy ? '; zcopy: processes of this user may read and write each other' : ''
  const key = keyFile === undefined ? '' : `; keyFile: ${keyFile}`
  const folder = rendezvous === undefined ? '' : `; rendezvous: ${rendezvous}`
  return `${source}: ${rules}; default: ${use} (${because}); users: ${others}; drivers: ${allowed}${memory}${key}${folder}`
}

function count({ ruleCount }: Policy): string {
  return ruleCount === 1 ? '1 rule' : `${ruleCount} rules`
}
