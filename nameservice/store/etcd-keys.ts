/**
 * What the name service keeps in etcd. Under the prefix:
 *
 *     PREFIX/epoch        names the history; made once
 *     PREFIX/l/LEASE      [owner, ttlMs]            under its lease: LEASE is its id, 16 hexadecimal digits
 *     PREFIX/mark         written by every daemon that begins to watch: its delivery proves that of every earlier change
 *     PREFIX/n/NAME       [owner, key, record]      under its lease
 */
import { kindOf } from '../name.ts'
import { isRecord } from '../record.ts'
import type { EtcdChange, EtcdOperation } from './etcd-gateway.ts'
import type { NewEntry, StoredChange, StoredEntry, StoredLease } from './stored.ts'

export interface ParsedChange {
  readonly lease?: { readonly id: string; readonly lease: StoredLease | undefined }
  readonly name?: { readonly name: string; readonly entry: StoredEntry | undefined }
}

const NOTHING: ParsedChange = {}

export class EtcdKeys {
  /** Of all keys. */
  readonly prefix: string
  readonly epoch: string
  readonly mark: string

  constructor(prefix: string) {
    this.prefix = `${prefix.replace(/\/$/, '')}/`
    this.epoch = `${this.prefix}epoch`
    this.mark = `${this.prefix}mark`
  }

  lease(id: string): string {
    return `${this.prefix}l/${id}`
  }

  name(name: string): string {
    return `${this.prefix}n/${name}`
  }

  putLease({ id, owner, ttlMs }: StoredLease): EtcdOperation {
    return { put: this.lease(id), value: JSON.stringify([owner, ttlMs]), lease: leaseNumber(id) }
  }

  putEntry({ name, lease, owner, key, record }: NewEntry): EtcdOperation {
    return { put: this.name(name), value: JSON.stringify([owner, key, record]), lease: leaseNumber(lease) }
  }

  /** The value of the key, if it has our form; undefined if not. */
  parse({ key, value, revision, lease }: EtcdChange): ParsedChange {
    const leaseKey = this.lease('')
    const nameKey = this.name('')
    if (key.startsWith(leaseKey)) {
      const id = key.slice(leaseKey.length)
      if (value === undefined) return { lease: { id, lease: undefined } }
      const [owner, ttlMs] = parseList(value)
      const isOurs = id === leaseId(lease) && typeof owner === 'string' && Number.isSafeInteger(ttlMs)
      return isOurs ? { lease: { id, lease: { id, owner, ttlMs: ttlMs as number } } } : NOTHING
    }
    if (!key.startsWith(nameKey)) return NOTHING
    const name = key.slice(nameKey.length)
    if (kindOf(name) === undefined) return NOTHING
    if (value === undefined) return { name: { name, entry: undefined } }
    const [owner, ownerKey, record] = parseList(value)
    if (typeof owner !== 'string' || typeof ownerKey !== 'string') return NOTHING
    if (typeof record !== 'string' || !isRecordText(record)) return NOTHING
    return { name: { name, entry: { name, lease: leaseId(lease), owner, key: ownerKey, record, revision } } }
  }

  /** The changes of names among the changes of one revision. */
  changesOf(group: readonly EtcdChange[]): StoredChange[] {
    const names = group.flatMap(change => {
      const { name } = this.parse(change)
      return name === undefined ? [] : [{ ...name, revision: change.revision }]
    })
    return names.map((change, i) => ({ ...change, part: i === names.length - 1 ? 0 : i + 1 }))
  }
}

/** etcd's number of a lease as our id. */
export function leaseId(lease: bigint): string {
  return lease.toString(16).padStart(16, '0')
}

export function leaseNumber(id: string): bigint {
  return BigInt(`0x${id}`)
}

/** True if it has the form that we write: it is sent unchanged, within other JSON and as a line of an event. */
function isRecordText(text: string): boolean {
  try {
    const record: unknown = JSON.parse(text)
    return isRecord(record) && JSON.stringify(record) === text
  } catch {
    return false
  }
}

function parseList(json: string): readonly unknown[] {
  try {
    const value: unknown = JSON.parse(json)
    return Array.isArray(value) ? value : []
  } catch {
    return []
  }
}
