/** The operations of the daemon, one method each, without cache or retry. */
import { PROBLEM_URN } from '../problem.ts'
import type { Entry, Lease, NewRecord } from '../record.ts'
import type { Cursor } from '../store/change-log.ts'
import {
  type EntryPage,
  parseJson,
  readCursor,
  readEntry,
  readLease,
  readLeases,
  readPage,
  readProblem,
  readRevision,
  strange,
} from './answers.ts'
import type { Caller, Question } from './caller.ts'
import { NameError } from './errors.ts'

export interface RegisterOptions {
  /** Take the name over: at once with the same owner key, else when the holder's lease ends. */
  readonly takeover?: boolean
  /** A secret by which a restarted program proves that the name is its own. */
  readonly ownerKey?: string
}

export interface LookUpAnswer {
  /** Undefined if the name is not registered. */
  readonly entry: Entry | undefined
  /** The point in the history that the answer is of. */
  readonly cursor: Cursor
  /** The daemon's store is unreachable: this is its last known state. */
  readonly isStale: boolean
}

export interface RegisterAnswer {
  readonly entry: Entry
  readonly cursor: Cursor
}

const NOT_FOUND = 404
const NO_SUCH_NAME: string = `${PROBLEM_URN}no-such-name`

export type CallOptions = Pick<Question, 'timeoutMs' | 'isBackground'>

export class NameApi {
  readonly #caller: Caller

  constructor(caller: Caller) {
    this.#caller = caller
  }

  async grant(ttlMs: number, options: CallOptions = {}): Promise<Lease> {
    const question: Question = { method: 'POST', path: '/v1/leases', body: { ttlMs }, ...options }
    return readLease(parseJson((await this.#caller.ask(question)).text))
  }

  async keepAlive(lease: string, options: CallOptions = {}): Promise<Lease> {
    const question: Question = { method: 'POST', path: `${leasePath(lease)}/keepalive`, ...options }
    return readLease(parseJson((await this.#caller.ask(question)).text))
  }

  async revoke(lease: string, options: CallOptions = {}): Promise<void> {
    await this.#caller.ask({ method: 'DELETE', path: leasePath(lease), ...options })
  }

  async leases(options: CallOptions = {}): Promise<Lease[]> {
    const leases: Lease[] = []
    for (let after: string | undefined = ''; after !== undefined; ) {
      const path = after === '' ? '/v1/leases' : `/v1/leases?after=${encodeURIComponent(after)}`
      const page = readLeases(parseJson((await this.#caller.ask({ method: 'GET', path, ...options })).text))
      if (page.next !== undefined && page.next <= after) throw strange()
      leases.push(...page.leases)
      after = page.next
    }
    return leases
  }

  /** Address of the daemon's page for a browser, with its token. Administrators only. */
  async pageAddress(options: CallOptions = {}): Promise<string> {
    const { text } = await this.#caller.ask({ method: 'GET', path: '/v1/page', ...options })
    const { address } = parseJson(text) as { address?: unknown }
    if (typeof address !== 'string') throw strange()
    return address
  }

  async register(
    name: string,
    lease: string,
    record: NewRecord,
    { takeover, ownerKey, ...options }: RegisterOptions & CallOptions = {},
  ): Promise<RegisterAnswer> {
    const body = { lease, record, takeover, ownerKey }
    const question: Question = { method: 'PUT', path: namePath(name), body, ...options }
    const { text, cursor } = await this.#caller.ask(question)
    return { entry: readEntry(parseJson(text)), cursor: readCursor(cursor) }
  }

  /** `lease`: only if it is registered under this one. Returns the revision of the change. */
  async deregister(name: string, lease?: string, options: CallOptions = {}): Promise<number> {
    const query = lease === undefined ? '' : `?lease=${encodeURIComponent(lease)}`
    const question: Question = { method: 'DELETE', path: namePath(name) + query, ...options }
    return readRevision(parseJson((await this.#caller.ask(question)).text))
  }

  async lookUp(name: string, options: CallOptions = {}): Promise<LookUpAnswer> {
    const question: Question = { method: 'GET', path: namePath(name), ...options }
    const reply = await this.#caller.ask(question, [NOT_FOUND])
    const { status, text, isStale } = reply
    if (status !== NOT_FOUND)
      return { entry: readEntry(parseJson(text)), cursor: readCursor(reply.cursor), isStale }
    const problem = readProblem(parseJson(text))
    if (problem.type === NO_SUCH_NAME) return { entry: undefined, cursor: readCursor(reply.cursor), isStale }
    throw new NameError('ERR_NAMES_REFUSED', problem.detail, { problem })
  }

  /** One page of names in order; give `next` as `after` for the next page. */
  async listPage(prefix: string, after = '', options: CallOptions = {}): Promise<EntryPage> {
    const query = new URLSearchParams({ prefix, ...(after === '' ? {} : { after }) })
    const question: Question = { method: 'GET', path: `/v1/names?${query}`, ...options }
    return readPage(parseJson((await this.#caller.ask(question)).text))
  }

  /** All names that begin with `prefix`. A watch that begins at `cursor` misses no change of them. */
  async list(prefix = '', options: CallOptions = {}): Promise<{ entries: Entry[]; cursor: string }> {
    const first = await this.listPage(prefix, '', options)
    const entries = [...first.entries]
    for (let { next } = first; next !== undefined; ) {
      const page = await this.listPage(prefix, next, options)
      if (page.next !== undefined && page.next <= next) throw strange()
      entries.push(...page.entries)
      next = page.next
    }
    return { entries, cursor: first.cursor }
  }
}

function namePath(name: string): string {
  return `/v1/names/${encodeURIComponent(name)}`
}

function leasePath(lease: string): string {
  return `/v1/leases/${encodeURIComponent(lease)}`
}
