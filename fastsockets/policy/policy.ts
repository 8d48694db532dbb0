import { isNobody, isOwnUser } from '../../nic/index.ts'
import type { Role, Use } from './policy-schema.ts'
import type { Rule } from './rule.ts'

/** What a policy says about one connection or listener, and where. */
export interface Decision {
  readonly use: Use
  /** For people: which rule, of which file. */
  readonly because: string
  /** A rule says it that has an address, and not the default, or one that is about all hosts. */
  readonly isForAddress: boolean
}

export interface PolicyParts {
  /** For people: the file, or that there is none. */
  readonly source: string
  readonly default: Use
  /** Why the default is what it is, if not the file says it. */
  readonly defaultBecause?: string
  /** Users other than our own that may be talked to. */
  readonly users: readonly number[]
  /** Undefined: all. */
  readonly drivers: readonly string[] | undefined
  /** Whether a process of this host and user may read and write our memory for large transfers, and we its. */
  readonly zcopy: boolean
  readonly rules: readonly Rule[]
}

/** Who may be fast with whom. The first rule that matches decides. */
export class Policy {
  readonly source: string
  readonly #parts: PolicyParts

  constructor(parts: PolicyParts) {
    this.source = parts.source
    this.#parts = parts
  }

  decide(program: string, role: Role, address: string | undefined, port: number): Decision {
    return this.#decideBy(this.#parts.rules.find(rule => rule.matches(program, role, address, port)))
  }

  /** The same for a unix socket, by its name in rules. */
  decidePath(program: string, role: Role, name: string): Decision {
    return this.#decideBy(this.#parts.rules.find(rule => rule.matchesPath(program, role, name)))
  }

  #decideBy(rule: Rule | undefined): Decision {
    if (rule === undefined) return this.default
    const { use, number, line, hasAddress } = rule
    return { use, because: `rule ${number} of ${this.source}, line ${line}`, isForAddress: hasAddress }
  }

  /** What holds where no rule does. */
  get default(): Decision {
    const { default: use, defaultBecause = `the default of ${this.source}` } = this.#parts
    return { use, because: defaultBecause, isForAddress: false }
  }

  /** A name says nothing of what holds for its addresses. */
  get hasAddresses(): boolean {
    return this.#parts.rules.some(({ hasAddress }) => hasAddress)
  }

  allowsUser(uid: number): boolean {
    return isOwnUser(uid) || (this.#parts.users.includes(uid) && !isNobody(uid))
  }

  allowsDriver(name: string): boolean {
    return this.#parts.drivers?.includes(name) ?? true
  }

  /** The same with what the environment asks for in place of what the file says. */
  with(parts: Partial<PolicyParts>): Policy {
    return new Policy({ ...this.#parts, ...parts })
  }

  /** For people: the lists. */
  get users(): readonly number[] {
    return this.#parts.users
  }

  get drivers(): readonly string[] | undefined {
    return this.#parts.drivers
  }

  get zcopy(): boolean {
    return this.#parts.zcopy
  }

  get ruleCount(): number {
    return this.#parts.rules.length
  }
}

export const NO_POLICY = new Policy({
  source: 'no policy file',
  default: 'fast',
  defaultBecause: 'no policy file',
  users: [],
  drivers: undefined,
  zcopy: false,
  rules: [],
})
