import { loadPolicy } from '../../policy/own-policy.ts'
import type { Check } from './check.ts'

/** The policy that holds for programs of this user. */
export function policyCheck(): Check {
  const name = 'policy'
  try {
    const { source, ruleCount } = loadPolicy()
    const detail = ruleCount === 0 ? source : `${source}, ${ruleCount} rules`
    return { name, state: 'ok', detail }
  } catch (error) {
    const detail = (error as Error).message.split('\n').join('; ')
    return { name, state: 'failed', detail, hint: 'mend it: fastsockets policy check' }
  }
}
