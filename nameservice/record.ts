/** What the name service says and is told: the JSON of its interface as types. */
import type { NameKind } from './name.ts'

/** One way to reach an endpoint. */
export interface DriverAddress {
  /** The driver's name, such as `shm`. */
  readonly name: string
  /** Its address blob in base64: opaque to everybody but the driver. */
  readonly address: string
}

/** What a name stands for. */
export interface NameRecord {
  readonly kind: NameKind
  /** The endpoint's own, global name. Printable, no spaces. */
  readonly endpoint: string
  /** Identity of its host: two processes with the same one can share memory. Empty if it is not known. */
  readonly host: string
  readonly pid: number
  readonly uid: number
  readonly drivers: readonly DriverAddress[]
  /** 64 bits as 16 hexadecimal digits. */
  readonly tag: string
  /** Version of the protocol that the endpoint speaks. */
  readonly version: number
  /** `inet` names only: the port on which the listener's bootstrap really listens. */
  readonly port?: number
  readonly labels: Readonly<Record<string, string>>
}

/** A record as a program gives it: what is left out has a default, or is known of the caller. */
export type NewRecord = Pick<NameRecord, 'endpoint'> & Partial<Omit<NameRecord, 'kind' | 'endpoint'>>

/** A name that is registered. */
export interface Entry {
  readonly name: string
  /** The change that made this entry what it is. */
  readonly revision: number
  readonly lease: string
  /** Whose it is: `uid:1000`, or `token:NAME`. */
  readonly owner: string
  readonly record: NameRecord
}

export interface Lease {
  readonly id: string
  readonly owner: string
  readonly ttlMs: number
  readonly names: number
  /** Time left, if this daemon keeps the time. */
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

/** Whether something that a stranger wrote has the form of a record. Members that we do not know are a later version's. */
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
