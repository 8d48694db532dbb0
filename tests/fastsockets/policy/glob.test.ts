/** Patterns take what they always took, and never longer than the product of both lengths. */
import t from 'tap'
import { matchesGlob, matchesWhole, PATTERN_LENGTH_MAX } from '../../../fastsockets/policy/glob.ts'
import { PolicyError } from '../../../fastsockets/policy/policy-error.ts'
import { parsePolicy } from '../../../fastsockets/policy/policy-file.ts'
import { seededRandom } from '../../support/random.ts'

/** What a pattern means, said by another program: right, but may go back for ever. */
function asExpression(pattern: string): RegExp {
  const source = pattern.replace(/\*\*\/?|[*?]|[^*?]+/g, part => {
    if (part === '**/') return '(?:.*/)?'
    if (part === '**') return '.*'
    if (part === '*') return '[^/]*'
    if (part === '?') return '[^/]'
    return part.replace(/[\\^$.+()|[\]{}]/g, '\\$&')
  })
  return new RegExp(`^${source}$`, 's')
}

t.test('100,000 random patterns and names: as a regular expression has it', async t => {
  const random = seededRandom(t)
  const text = (letters: string, most: number): string =>
    Array.from({ length: random.within(0, most) }, () => letters[random.within(0, letters.length - 1)]).join(
      '',
    )
  let matches = 0
  for (let i = 0; i < 100_000; i++) {
    const pattern = text('ab/.*?*/\n', 8)
    const name = text('ab/.*\n', 8)
    const wanted = asExpression(pattern).test(name)
    if (wanted) matches++
    if (matchesWhole(name, pattern) !== wanted) t.fail(JSON.stringify({ pattern, name, wanted }))
  }
  t.ok(matches > 1000, `${matches} matched`)
})

t.test('patterns that a backtracking matcher never comes to an end with', async t => {
  const long = `/${'a/'.repeat(2000)}b`
  for (const [path, pattern] of [
    ['/srv/app/releases/20250101/current/dist/server/main.js', '**/*a*/**/*b*/**/*c*/**/x.js'],
    [long, `${'**/'.repeat(300)}x`],
    [`/run/${'a'.repeat(4000)}`, `/run/${'*a'.repeat(500)}*b`],
    [long, `${'**/*a*/'.repeat(100)}x`],
    ['a'.repeat(4000), `${'**a'.repeat(300)}b`],
  ] as const) {
    t.ok(pattern.length <= PATTERN_LENGTH_MAX)
    t.equal(matchesGlob(path, pattern), false, pattern.slice(0, 40))
  }
  t.equal(matchesGlob(`${long.slice(0, -1)}x`, `${'**/'.repeat(300)}x`), true)
})

t.test('a longer pattern is refused, with its line', async t => {
  for (const key of ['program', 'path']) {
    const rule = (length: number): string => `rules:\n  - { use: tcp, ${key}: "${'*'.repeat(length)}" }\n`
    t.ok(parsePolicy(rule(PATTERN_LENGTH_MAX), 'p'))
    t.throws(() => parsePolicy(rule(PATTERN_LENGTH_MAX + 1), 'p'), {
      constructor: PolicyError,
      message: new RegExp(`^p:2: rule 1: ${key} must NOT have more than ${PATTERN_LENGTH_MAX} characters$`),
    } as never)
  }
})
