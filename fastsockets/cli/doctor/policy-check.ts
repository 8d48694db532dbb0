import { describeOwnPolicy } from '../policy/describe-policy.ts'
import type { Check } from './check.ts'

/** The policy that holds for programs of this user. */
export function policyCheck(): Check {
  const name = 'policy'
  try {
    return { name, state: 'ok', detail: describeOwnPolicy().join(' ') }
  } catch (error) {
    const detail = (error as Error).message.split('\n').join('; ')
    return { name, state: 'failed', detail, hint: 'mend it: fastsockets policy check' }
  }
}
