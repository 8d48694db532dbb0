import { existsSync } from 'node:fs'
import { isAbsolute } from 'node:path'
import type { Policy } from '../../policy/policy.ts'
import { hasWildcards, type Rule } from '../../policy/rule.ts'

/** A line for each rule that can never decide: an earlier one matches all that it matches, or its program is not there. */
export function policyWarnings({ source, rules }: Policy): string[] {
  return rules.flatMap((rule, index) => {
    const earlier = rules.slice(0, index).find(one => one.covers(rule))
    const reason = earlier === undefined ? programIsMissing(rule) : `rule ${earlier.number} matches all of it`
    return reason === undefined
      ? []
      : [`${source}:${rule.line}: rule ${rule.number} never decides: ${reason}`]
  })
}

function programIsMissing({ program }: Rule): string | undefined {
  if (program === undefined || hasWildcards(program) || !isAbsolute(program)) return undefined
  return existsSync(program) ? undefined : `there is no file ${program}`
}
