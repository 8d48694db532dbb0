/** The rules of the name service: which caller may change which name, and the limits of each. */
import { createHash } from 'node:crypto'
import { kindOf } from '../name.ts'
import { Refusal } from '../problem.ts'
import type { Lease, NameRecord } from '../record.ts'
import type { LeaseState } from '../store/image.ts'
import type { Store } from '../store/store.ts'
import type { Facts, NewEntry, StoredEntry, StoredLease } from '../store/stored.ts'
import { mayAct, type Principal, requireWrite } from './principal.ts'
import type { Limits } from './settings-schema.ts'
import { limitFor, tooManyInAll } from './shares.ts'

export const TTL_MS_DEFAULT = 10_000
const ZERO_TAG = '0000000000000000'

/** A registration request whose form has been checked. */
export interface RegistrationRequest {
  readonly lease: string
  readonly record: Partial<NameRecord> & Pick<NameRecord, 'endpoint'>
  readonly takeover?: boolean
  readonly ownerKey?: string
}

export class Registrar {
  readonly #store: Store
  readonly #limits: Limits

  constructor(store: Store, limits: Limits) {
    this.#store = store
    this.#limits = limits
  }

  async grant(caller: Principal, ttlMs = TTL_MS_DEFAULT): Promise<Lease> {
    requireWrite(caller)
    const { leaseTtlMinMs, leaseTtlMaxMs, leases, leasesPerOwner } = this.#limits
    if (ttlMs < leaseTtlMinMs || ttlMs > leaseTtlMaxMs) {
      const detail = `must be from ${leaseTtlMinMs} to ${leaseTtlMaxMs}`
      throw new Refusal('malformed', `ttlMs ${detail}.`, { errors: [{ at: '/ttlMs', detail }] })
    }
    const { owner } = caller
    const lease = await this.#store.grant(owner, ttlMs, facts => {
      if (facts.leaseCountOf(owner) >= leasesPerOwner) {
        throw new Refusal('limit-leases', `An owner may have ${leasesPerOwner} leases.`)
      }
      if (facts.leaseCount >= limitFor(caller, leases)) throw tooManyInAll('leases', caller, leases)
    })
    return { ...lease, names: 0, expiresInMs: lease.ttlMs }
  }

  async keepAlive(caller: Principal, id: string): Promise<Lease> {
    await this.#leaseOf(caller, id)
    const lease = await this.#store.keepAlive(id)
    if (lease === undefined) throw noSuchLease(id)
    return { ...plain(lease), names: this.#store.image.nameCountOf(id), expiresInMs: lease.ttlMs }
  }

  async revoke(caller: Principal, id: string): Promise<void> {
    await this.#leaseOf(caller, id)
    if (!(await this.#store.revoke(id))) throw noSuchLease(id)
  }

  /** A page of the caller's leases; an administrator gets all leases. */
  leases(caller: Principal, after: string, limit: number): Lease[] {
    return this.#store.image
      .leases(caller.isAdmin ? undefined : caller.owner, after, limit)
      .map(lease => this.#describe(lease))
  }

  async lease(caller: Principal, id: string): Promise<Lease> {
    return this.#describe(await this.#leaseOf(caller, id))
  }

  async register(caller: Principal, name: string, request: RegistrationRequest): Promise<StoredEntry> {
    requireWrite(caller, name)
    const record = flatten(JSON.stringify(completeRecord(caller, name, request.record)))
    const key = request.ownerKey === undefined ? '' : digest(request.ownerKey)
    if (this.#store.image.lease(request.lease) === undefined) await this.#store.fetchLease(request.lease)
    const change = await this.#store.update(name, facts => {
      const lease = facts.lease(request.lease)
      if (lease === undefined) throw noSuchLease(request.lease)
      if (!mayAct(caller, lease.owner)) throw new Refusal('forbidden', 'The lease belongs to another owner.')
      const entry = { name, lease: lease.id, owner: lease.owner, key, record }
      this.#judge(caller, facts, entry, request.takeover === true)
      return entry
    })
    return change.entry as StoredEntry
  }

  /** `lease`: deregisters only if the name is registered under this lease. */
  async deregister(caller: Principal, name: string, lease: string | undefined): Promise<number> {
    requireWrite(caller, name)
    const change = await this.#store.update(name, facts => {
      const entry = facts.entry(name)
      if (entry === undefined) throw noSuchName(name)
      if (!mayAct(caller, entry.owner)) throw new Refusal('forbidden', 'The name belongs to another owner.')
      if (lease !== undefined && lease !== entry.lease) {
        throw new Refusal('name-held', 'The name is registered under another lease.')
      }
      return undefined
    })
    return change.revision
  }

  entry(name: string): StoredEntry {
    const entry = this.#store.image.entry(name)
    if (entry === undefined) throw noSuchName(name)
    return entry
  }

  #judge(caller: Principal, facts: Facts, entry: NewEntry, isTakeover: boolean): void {
    const holder = facts.entry(entry.name)
    const { names, namesPerLease, namesPerOwner } = this.#limits
    this.#judgeLength(caller, facts, entry, holder)
    if (holder?.lease === entry.lease) return
    if (holder !== undefined && !(isTakeover && mayTakeOver(caller, holder, entry))) {
      const lease = this.#store.image.lease(holder.lease)
      const expiresInMs = lease && this.#store.image.expiresInMs(lease)
      throw new Refusal(
        'name-held',
        'Another owner holds the name. It is free when their lease ends; before that only with the same owner key.',
        expiresInMs === undefined ? {} : { retryAfterMs: expiresInMs },
      )
    }
    if (facts.nameCountOf(entry.lease) >= namesPerLease) {
      throw new Refusal('limit-names', `A lease may have ${namesPerLease} names.`)
    }
    if (holder?.owner !== entry.owner && facts.nameCountOfOwner(entry.owner) >= namesPerOwner) {
      throw new Refusal('limit-names', `An owner may have ${namesPerOwner} names.`)
    }
    if (holder === undefined && facts.nameCount >= limitFor(caller, names))
      throw tooManyInAll('names', caller, names)
  }

  /** Checks the limits of record bytes. Only growth is refused. */
  #judgeLength(caller: Principal, facts: Facts, entry: NewEntry, holder: StoredEntry | undefined): void {
    const { recordsBytes, recordsBytesPerOwner } = this.#limits
    const { owner, record } = entry
    const growth = record.length - (holder?.record.length ?? 0)
    const growthOfOwner = holder?.owner === owner ? growth : record.length
    if (growthOfOwner > 0 && facts.recordsLengthOf(owner) + growthOfOwner > recordsBytesPerOwner) {
      const detail = `The records of an owner may have ${recordsBytesPerOwner} bytes together.`
      throw new Refusal('limit-bytes', detail)
    }
    if (growth > 0 && facts.recordsLength + growth > limitFor(caller, recordsBytes))
      throw tooManyInAll('bytes of all records together', caller, recordsBytes)
  }

  /** Asks the store about an unknown lease: another daemon may just have granted it. */
  async #fetchLease(lease: string): Promise<void> {
    if (this.#store.image.lease(lease) === undefined) await this.#store.fetchLease(lease)
  }

  async #leaseOf(caller: Principal, id: string): Promise<LeaseState> {
    requireWrite(caller)
    await this.#fetchLease(id)
    const lease = this.#store.image.lease(id)
    if (lease === undefined) throw noSuchLease(id)
    if (!mayAct(caller, lease.owner)) throw new Refusal('forbidden', 'The lease belongs to another owner.')
    return lease
  }

  #describe(lease: LeaseState): Lease {
    const expiresInMs = this.#store.image.expiresInMs(lease)
    const described = { ...plain(lease), names: lease.names.size }
    return expiresInMs === undefined ? described : { ...described, expiresInMs }
  }
}

/** `StoredEntry` as JSON text. Its record is JSON text already. */
export function entryJson({ name, revision, lease, owner, record }: StoredEntry): string {
  return `{"name":${JSON.stringify(name)},"revision":${revision},"lease":"${lease}","owner":${JSON.stringify(owner)},"record":${record}}`
}

function mayTakeOver(caller: Principal, holder: StoredEntry, entry: NewEntry): boolean {
  return caller.isAdmin || (holder.owner === entry.owner && holder.key !== '' && holder.key === entry.key)
}

/** The record with the defaults of missing members, in a fixed order. */
function completeRecord(caller: Principal, name: string, given: RegistrationRequest['record']): NameRecord {
  const kind = kindOf(name)
  if (kind === undefined) throw malformed('name', 'is neither an endpoint nor an inet name')
  if (given.kind !== undefined && given.kind !== kind) throw malformed('/record/kind', `must be ${kind}`)
  if (given.port !== undefined && kind !== 'inet') throw malformed('/record/port', 'is for inet names only')
  const { credentials, isAdmin } = caller
  if (credentials !== undefined && !isAdmin && given.uid !== undefined && given.uid !== credentials.uid) {
    throw new Refusal('forbidden', 'A user may only register endpoints of its own.')
  }
  const uid = given.uid ?? credentials?.uid
  if (uid === undefined) throw malformed('/record/uid', 'is needed: over TCP the caller has no user id')
  const {
    endpoint,
    host = '',
    pid = credentials?.pid ?? 0,
    drivers = [],
    tag = ZERO_TAG,
    version = 1,
  } = given
  const { port, labels = {} } = given
  return { kind, endpoint, host, pid, uid, drivers, tag, version, port, labels } as NameRecord
}

/** Copies a text into one piece: `JSON.stringify` makes a chain of pieces, which would be kept as long as the name. */
function flatten(text: string): string {
  return Buffer.from(text).toString()
}

function plain({ id, owner, ttlMs }: StoredLease): StoredLease {
  return { id, owner, ttlMs }
}

function digest(ownerKey: string): string {
  return createHash('sha256').update(ownerKey).digest('hex')
}

function malformed(at: string, detail: string): Refusal {
  return new Refusal('malformed', `${at} ${detail}.`, { errors: [{ at, detail }] })
}

function noSuchLease(id: string): Refusal {
  return new Refusal('no-such-lease', `There is no lease ${id}; it may have ended.`)
}

function noSuchName(name: string): Refusal {
  return new Refusal('no-such-name', `${name} is not registered.`)
}
