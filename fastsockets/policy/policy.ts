import { isOverflowUser, isOwnUser } from '../../nic/index.ts'
import type { PolicySettings } from '../../nic/policy-source.ts'
import { type Datagrams, NAMED_DRIVERS, type Role, type Start, type Use } from './policy-schema.ts'
import type { Rule } from './rule.ts'

/** The decision of a policy about one connection or listener, with its origin. */
export interface Decision {
  readonly use: Use
  /** For people: the rule and its file. */
  readonly because: string
  /** The number of the rule; 0 for the default. */
  readonly rule: number
  /** True if a rule with an address decided, and not the default or a rule about all addresses. */
  readonly isForAddress: boolean
}

export interface PolicyParts {
  /** For people: the path of the file, or that there is none. */
  readonly source: string
  /** Of the file's text: the first 6 bytes of its SHA-256, as `sha256sum` prints them. */
  readonly version?: string
  readonly default: Use
  /** For people: the origin of the default, unless the file states it. */
  readonly defaultBecause?: string
  /** Other users with which the fast way is allowed. */
  readonly users: readonly number[]
  /** Undefined: all but `NAMED_DRIVERS`. */
  readonly drivers: readonly string[] | undefined
  /** Whether a process of this host and user may read and write our memory for large transfers, and we its memory. */
  readonly zcopy: boolean
  /** Whether connections start on TCP, and become fast once that pays. Undefined: yes, unless the environment says otherwise. */
  readonly start?: Start | undefined
  /** Whether datagrams may go past the kernel. Undefined: the default. */
  readonly datagrams?: Datagrams | undefined
  /** The key that hosts share for active messages over TCP. */
  readonly keyFile?: string | undefined
  /** The folder in which containers of one host find each other, or `off`. */
  readonly rendezvous?: string | undefined
  readonly rules: readonly Rule[]
}

/** The rules, of which the first that matches decides, and the limits on users, drivers and zcopy. */
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
    return {
      use,
      because: `rule ${number} of ${this.source}, line ${line}`,
      rule: number,
      isForAddress: hasAddress,
    }
  }

  /** The decision where no rule matches. */
  get default(): Decision {
    const { default: use, defaultBecause = `the default of ${this.source}` } = this.#parts
    return { use, because: defaultBecause, rule: 0, isForAddress: false }
  }

  /** True if a rule names addresses: then a host name alone does not decide. */
  get hasAddresses(): boolean {
    return this.#parts.rules.some(({ hasAddress }) => hasAddress)
  }

  allowsUser(uid: number): boolean {
    return isOwnUser(uid) || (this.#parts.users.includes(uid) && !isOverflowUser(uid))
  }

  allowsDriver(name: string): boolean {
    return this.#parts.drivers?.includes(name) ?? !NAMED_DRIVERS.includes(name)
  }

  /** A copy in which `parts`, from the environment, replace the values of the file. */
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

  /** Undefined without a file. */
  get version(): string | undefined {
    return this.#parts.version
  }

  get zcopy(): boolean {
    return this.#parts.zcopy
  }

  get start(): Start | undefined {
    return this.#parts.start
  }

  get datagrams(): Datagrams | undefined {
    return this.#parts.datagrams
  }

  get settings(): PolicySettings {
    const { keyFile, rendezvous, users } = this.#parts
    return { keyFile, rendezvous, hasUsers: users.length > 0 }
  }

  get rules(): readonly Rule[] {
    return this.#parts.rules
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
