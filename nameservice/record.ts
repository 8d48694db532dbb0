/** Requests and answers of the name service: the JSON of its interface as types. */
import type { NameKind } from './name.ts'

/** One way to reach an endpoint. */
export interface DriverAddress {
  /** The driver's name, such as `shm`. */
  readonly name: string
  /** Address blob of the driver in base64: opaque to everything but the driver. */
  readonly address: string
}

/** The record of a name. */
export interface NameRecord {
  readonly kind: NameKind
  /** The endpoint's own, global name. Printable, no spaces. */
  readonly endpoint: string
  /** Identity of the endpoint's host: two processes with the same one can share memory. Empty if unknown. */
  readonly host: string
  readonly pid: number
  readonly uid: number
  readonly drivers: readonly DriverAddress[]
  /** 64 bits as 16 hexadecimal digits. */
  readonly tag: string
  /** Version of the protocol that the endpoint speaks. */
  readonly version: number
  /** `inet` names only: the hashed port, on which the listener's bootstrap listens. */
  readonly port?: number
  readonly labels: Readonly<Record<string, string>>
}

/** A record as a program gives it: missing members have a default, or the daemon knows them of the caller. */
export type NewRecord = Pick<NameRecord, 'endpoint'> & Partial<Omit<NameRecord, 'kind' | 'endpoint'>>

/** A registered name. */
export interface Entry {
  readonly name: string
  /** Number of the change that made this entry. */
  readonly revision: number
  readonly lease: string
  /** Owner of the entry: `uid:1000`, or `token:NAME`. */
  readonly owner: string
  readonly record: NameRecord
}

export interface Lease {
  readonly id: string
  readonly owner: string
  readonly ttlMs: number
  readonly names: number
  /** Time left, if this daemon counts the time of the lease. */
  readonly expiresInMs?: number
}

/** One change of one name. */
export type Change = ({ readonly type: 'put' } & Entry) | DeletedName

export interface DeletedName {
  readonly type: 'delete'
  readonly name: string
  readonly revision: number
}

const TAG = /^[0-9a-f]{16}$/
const PORT_MAX = 65_535

/**
 * Whether a value from a stranger has the form of a record. Unknown members belong to a later version and are
 * allowed.
 */
export function isRecord(value: unknown): value is NameRecord {
  if (!isObject(value)) return false
  const { kind, endpoint, host, pid, uid, drivers, tag, version, port, labels } = value
  return (
    (kind === 'endpoint' || kind === 'inet') &&
    [endpoint, host].every(text => typeof text === 'string') &&
    typeof tag === 'string' &&
    TAG.test(tag) &&
    [pid, uid, version].every(number => Number.isSafeInteger(number) && Number(number) >= 0) &&
    (port === undefined || (Number.isInteger(port) && Number(port) >= 1 && Number(port) <= PORT_MAX)) &&
    Array.isArray(drivers) &&
    drivers.every(isDriverAddress) &&
    isObject(labels) &&
    Object.values(labels).every(label => typeof label === 'string')
  )
}

function isDriverAddress(value: unknown): boolean {
  return isObject(value) && typeof value.name === 'string' && typeof value.address === 'string'
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
