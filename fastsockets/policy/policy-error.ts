import { shownText } from '../../nic/shown-text.ts'

/** One fault of a policy, and its place. */
export interface PolicyProblem {
  readonly line: number
  /** Counted from 1; undefined outside the rules. */
  readonly rule: number | undefined
  readonly text: string
}

export class PolicyError extends Error {
  readonly code = 'ERR_FASTSOCKETS_POLICY'
  readonly path: string
  readonly problems: readonly PolicyProblem[]
  /** The text has the word outside comments: a connection may have been meant that must not fall back. */
  readonly mentionsRequire: boolean

  constructor(path: string, problems: readonly PolicyProblem[], text = '') {
    super(problems.map(problem => describe(path, problem)).join('\n'))
    this.path = path
    this.problems = problems
    this.mentionsRequire = /^[^#\n]*\brequire\b/m.test(text)
  }
}

function describe(path: string, { line, rule, text }: PolicyProblem): string {
  const place = line === 0 ? path : `${path}:${line}`
  return shownText(rule === undefined ? `${place}: ${text}` : `${place}: rule ${rule}: ${text}`)
}
