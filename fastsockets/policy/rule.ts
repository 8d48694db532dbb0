import { BlockList, isIP } from 'node:net'
import { matchesGlob, matchesWhole } from './glob.ts'
import { PORT_DEMAND, type Role, type RuleDocument, type Use } from './policy-schema.ts'

/** One rule of a policy: its conditions and its `use`. A missing condition matches everything. */
export class Rule {
  readonly use: Use
  /** Position among the rules, from 1 on, and the line on which the rule begins. */
  readonly number: number
  readonly line: number
  readonly #document: RuleDocument
  readonly #addresses: Prefix | undefined
  readonly #ports: readonly [first: number, last: number]

  /** Throws an Error for faults that the schema cannot express. */
  constructor(document: RuleDocument, number: number, line: number) {
    this.use = document.use
    this.number = number
    this.line = line
    this.#document = document
    this.#addresses = document.address === undefined ? undefined : parsePrefix(document.address)
    this.#ports = parsePorts(document.port)
    if (document.path !== undefined && this.#isAboutAddresses)
      throw new Error('path is for unix sockets, which have neither address nor port: make two rules of it')
  }

  /** The rule is limited to some addresses. */
  get hasAddress(): boolean {
    return this.#addresses !== undefined
  }

  get #isAboutAddresses(): boolean {
    return this.#document.address !== undefined || this.#document.port !== undefined
  }

  /** `address` is undefined before the name is resolved: then only rules without an address can match. */
  matches(program: string, role: Role, address: string | undefined, port: number): boolean {
    if (this.#document.path !== undefined || !this.#concerns(program, role)) return false
    if (port < this.#ports[0] || port > this.#ports[1]) return false
    if (this.#addresses !== undefined) {
      const family = address === undefined ? 0 : isIP(address)
      if (address === undefined || family === 0) return false
      if (!this.#addresses.list.check(address, family === 6 ? 'ipv6' : 'ipv4')) return false
    }
    return true
  }

  /** The same for a unix socket, by its name in rules (unix-names.ts). */
  matchesPath(program: string, role: Role, name: string): boolean {
    if (this.#isAboutAddresses || !this.#concerns(program, role)) return false
    const { path } = this.#document
    if (path === undefined) return true
    return path.startsWith('@') ? matchesWhole(name, path) : matchesGlob(name, path)
  }

  /** The pattern of programs, as it was written. */
  get program(): string | undefined {
    return this.#document.program
  }

  /** True if this rule matches everything that `other` matches; where a comparison of patterns would be needed, false. */
  covers(other: Rule): boolean {
    const { program, role, path } = this.#document
    const theirs = other.#document
    if (!coversPattern(program, theirs.program, matchesGlob)) return false
    if (role !== undefined && role !== theirs.role) return false
    if (path !== undefined)
      return coversPattern(path, theirs.path, path.startsWith('@') ? matchesWhole : matchesGlob)
    if (!this.#isAboutAddresses) return true
    if (!other.#isAboutAddresses) return false
    if (other.#ports[0] < this.#ports[0] || other.#ports[1] > this.#ports[1]) return false
    return this.#addresses === undefined || coversPrefix(this.#addresses, other.#addresses)
  }

  #concerns(program: string, role: Role): boolean {
    const { program: pattern, role: ownRole } = this.#document
    if (ownRole !== undefined && ownRole !== role) return false
    return pattern === undefined || matchesGlob(program, pattern)
  }
}

/** A range of addresses. */
interface Prefix {
  readonly address: string
  readonly family: 'ipv4' | 'ipv6'
  readonly length: number
  readonly list: BlockList
}

function coversPrefix(own: Prefix, other: Prefix | undefined): boolean {
  return (
    other !== undefined &&
    own.family === other.family &&
    own.length <= other.length &&
    own.list.check(other.address, other.family)
  )
}

function coversPattern(
  own: string | undefined,
  other: string | undefined,
  matches: (name: string, pattern: string) => boolean,
): boolean {
  if (own === undefined || own === other) return true
  return other !== undefined && !hasWildcards(other) && matches(other, own)
}

export function hasWildcards(pattern: string): boolean {
  return /[*?]/.test(pattern)
}

/** `10.0.0.0/8`, `fd00::/8`, or one address. */
function parsePrefix(text: string): Prefix {
  const [address = '', bits, ...rest] = text.split('/')
  const family = isIP(address)
  const bitsMax = family === 6 ? 128 : 32
  const length = bits === undefined ? bitsMax : Number(bits)
  const isLength = bits === undefined || /^\d{1,3}$/.test(bits)
  if (family === 0 || rest.length > 0 || !isLength || length > bitsMax) {
    throw new Error(`address must be an address or a prefix such as 10.0.0.0/8, not ${JSON.stringify(text)}`)
  }
  const list = new BlockList()
  const kind = family === 6 ? 'ipv6' : 'ipv4'
  list.addSubnet(address, length, kind)
  return { address, family: kind, length, list }
}

/** `8080` or `8000-8099`. */
function parsePorts(port: number | string | undefined): readonly [number, number] {
  if (port === undefined) return [0, 0xffff]
  const [first = 0, last = first] = String(port).split('-').map(Number)
  if (first < 1 || last > 0xffff || first > last) {
    throw new Error(`port ${PORT_DEMAND}, not ${JSON.stringify(port)}`)
  }
  return [first, last]
}
