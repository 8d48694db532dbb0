/** Policy files, and the names of programs, paths and addresses that are held against their rules. */

import type { Policy } from '../../../../fastsockets/policy/policy.ts'
import { PolicyError } from '../../../../fastsockets/policy/policy-error.ts'
import { parsePolicy } from '../../../../fastsockets/policy/policy-file.ts'
import type { Random } from '../../../support/random.ts'
import type { Attack, Kind } from '../kind.ts'
import { spoilText } from '../spoil.ts'

const GOOD = `default: tcp
users: [1000, 1001]
drivers: [shm]
rules:
  - { program: "/srv/**/a*b?/*.js", role: client, address: 10.0.0.0/8, port: 80-99, use: require }
  - { path: "@app*", use: fast }
  - address: "fd00::/8"
    use: fast
`
/** A file is read once, and held against many names. */
const NAMES_EACH = 9
const LETTERS = 'ab/.*?-:1'

function someName(random: Random): string {
  return Array.from(
    { length: random.within(0, 60) },
    () => LETTERS[random.within(0, LETTERS.length - 1)],
  ).join('')
}

function parse(text: string): Policy | undefined {
  try {
    return parsePolicy(text, 'p')
  } catch (error) {
    if (error instanceof PolicyError) return undefined
    throw error
  }
}

export const policyFile: Kind = {
  name: 'policy-file',
  what: 'policy files, and names that are held against their rules',
  reaches: ['policy', 'refused', 'decision'],
  open: () => ({
    attack({ random, inputs, victim, count }: Attack) {
      let policy = parsePolicy(GOOD, 'p')
      for (let i = 0; i < inputs; i++) {
        if (i % (NAMES_EACH + 1) === 0) {
          const text = spoilText(random, GOOD)
          const parsed = victim(() => parse(text))
          count(parsed === undefined ? 'refused' : 'policy')
          policy = parsed ?? policy
          continue
        }
        const name = someName(random)
        victim(() => policy.decide(name, random.pick(['client', 'server']), name, random.within(-1, 70_000)))
        victim(() => policy.decidePath(name, 'server', name))
        count('decision')
      }
    },
    honest() {
      const { use } = parsePolicy(GOOD, 'p').decide('/srv/x/ab1/x.js', 'client', '10.1.1.1', 80)
      if (use !== 'require') throw new Error(use)
    },
  }),
}
