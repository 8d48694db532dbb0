/** The daemon's answers are a stranger's input: they are validated before use. */
import { PROBLEM_URN, type Problem } from '../problem.ts'
import { type Change, type Entry, isRecord, type Lease } from '../record.ts'
import { type Cursor, parseCursor } from '../store/change-log.ts'
import { NameError } from './errors.ts'

type Fields = Readonly<Record<string, unknown>>

export function readEntry(value: unknown): Entry {
  const { name, revision, lease, owner, record } = fields(value)
  if (!isRecord(record)) throw strange()
  return {
    name: text(name),
    revision: uint(revision),
    lease: text(lease),
    owner: text(owner),
    record,
  }
}

export function readLease(value: unknown): Lease {
  const { id, owner, ttlMs, names, expiresInMs } = fields(value)
  return {
    id: text(id),
    owner: text(owner),
    ttlMs: uint(ttlMs),
    names: uint(names),
    ...(expiresInMs === undefined ? {} : { expiresInMs: uint(expiresInMs) }),
  }
}

export interface LeasePage {
  readonly leases: readonly Lease[]
  readonly next: string | undefined
}

export function readLeases(value: unknown): LeasePage {
  const { leases, next } = fields(value)
  return { leases: list(leases).map(readLease), next: next === undefined ? undefined : text(next) }
}

export interface EntryPage {
  readonly entries: readonly Entry[]
  /** The cursor from which a watch misses no change. */
  readonly cursor: string
  readonly next: string | undefined
}

export function readPage(value: unknown): EntryPage {
  const { entries, cursor, next } = fields(value)
  return {
    entries: list(entries).map(readEntry),
    cursor: text(cursor),
    next: next === undefined ? undefined : text(next),
  }
}

export function readChange(value: unknown): Change {
  const { type, name, revision } = fields(value)
  if (type === 'put') return { type, ...readEntry(value) }
  if (type === 'delete') return { type, name: text(name), revision: uint(revision) }
  throw strange()
}

export function readRevision(value: unknown): number {
  return uint(fields(value).revision)
}

export function readCursor(value: unknown): Cursor {
  const cursor = parseCursor(text(value))
  if (cursor === undefined) throw strange()
  return cursor
}

export function readProblem(value: unknown): Problem {
  const { type, title, status, detail, retryAfterMs, oldest } = fields(value)
  if (!text(type).startsWith(PROBLEM_URN)) throw strange()
  return {
    type: text(type),
    title: text(title),
    status: uint(status),
    detail: text(detail),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs: uint(retryAfterMs) }),
    ...(oldest === undefined ? {} : { oldest: text(oldest) }),
  }
}

export function parseJson(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    throw strange()
  }
}

function fields(value: unknown): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw strange()
  return value as Fields
}

function list(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw strange()
  return value
}

function text(value: unknown): string {
  if (typeof value !== 'string') throw strange()
  return value
}

function uint(value: unknown): number {
  if (!Number.isSafeInteger(value) || (value as number) < 0) throw strange()
  return value as number
}

export function strange(): NameError {
  return new NameError('ERR_NAMES_PROTOCOL', 'the name service gave an answer that makes no sense')
}
