/**
 * The journal in a LevelDB directory. Keys, in their order:
 *
 *     c/REVISION      the changes of one write, REVISION that of the last as 16 digits: each the name in JSON, and its
 *                     entry unless it was deleted; an empty line between two
 *     head            the JournalHead
 *     l/LEASE         a lease
 *     n/NAME          an entry: [lease, owner, key, revision] in JSON, a line end, the record in JSON
 *
 * Every value begins with a checksum of its key and itself. LevelDB keeps checksums too, but passes over damaged parts
 * of its log in silence, and does not look at those of its tables; so what is missing must show: changes have no gaps,
 * and the head counts names and leases.
 */
import * as crypto from 'node:crypto'
import { mkdir, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { ClassicLevel } from 'classic-level'
import { type Batch, emptySnapshot, type Journal, type JournalHead, type Snapshot } from './journal.ts'
import { StoreError } from './store.ts'
import type { StoredChange, StoredEntry, StoredLease } from './stored.ts'

const HEAD = 'head'
const CHANGE = 'c/'
const LEASE = 'l/'
const NAME = 'n/'
const REVISION_DIGITS = 16
/** JSON contains no line end, and our values no empty line. */
const BETWEEN_CHANGES = '\n\n'
const CHECKSUM_LENGTH = 8
/** Pairs, and their bytes, that one read of loading takes. */
const PAGE = 2000
const PAGE_BYTES = 1024 * 1024
const DAMAGED = 'damaged'
/** LevelDB's messages about truncated or missing files; other I/O failures are the system's. */
const DAMAGE = /: (Invalid argument|No such file or directory)$/
const OPTIONS = { keyEncoding: 'utf8', valueEncoding: 'utf8', compression: false } as const

type Pair = [key: string, value: string]
type Level = ClassicLevel<string, string>

export class LevelJournal implements Journal {
  readonly #directory: string
  #level: Level | undefined
  /** The last revisions of the writes whose changes may be there, in their order. */
  #written: number[] = []

  constructor(directory: string) {
    this.#directory = directory
  }

  async open(): Promise<Snapshot> {
    try {
      await mkdir(this.#directory, { recursive: true, mode: 0o700 })
      const isNew = !(await readdir(this.#directory)).some(file => /^CURRENT$|\.(ldb|log)$/.test(file))
      const level = await this.#openLevel(isNew)
      this.#written = []
      if (!isNew) return await read(level, this.#written)
      const snapshot = emptySnapshot()
      const text = JSON.stringify(snapshot.head)
      await level.put(HEAD, checksum(HEAD, text) + text, { sync: true })
      return snapshot
    } catch (error) {
      await this.close()
      throw storeError(error)
    }
  }

  async quarantine(): Promise<void> {
    const aside = `${this.#directory}.damaged`
    await rm(aside, { recursive: true, force: true })
    await rename(this.#directory, aside).catch(() => this.#quarantineWithin())
  }

  /** The directory itself cannot be moved if it is a volume. */
  async #quarantineWithin(): Promise<void> {
    const files = (await readdir(this.#directory)).filter(file => file !== DAMAGED)
    const aside = join(this.#directory, DAMAGED)
    await rm(aside, { recursive: true, force: true })
    await mkdir(aside, { mode: 0o700 })
    for (const file of files) await rename(join(this.#directory, file), join(aside, file))
  }

  async write({ head, leases, entries, changes }: Batch): Promise<void> {
    const written = this.#written
    const last = changes.at(-1)?.revision
    if (last !== undefined) written.push(last)
    let from = 0
    while (from < written.length && (written[from] as number) <= head.oldestRevision) from += 1
    let end = written.length
    while (end > from && (written[end - 1] as number) > head.revision) end -= 1
    try {
      // Half the price of an array of operations, each of which LevelDB's binding takes apart.
      const writes = (this.#level as Level).batch()
      const put = (key: string, text: string) => writes.put(key, checksum(key, text) + text)
      // Most of them are the entry of a change and the entry of a name, with the same text.
      const encoded = new Map<StoredEntry, string>()
      const encode = (entry: StoredEntry): string => {
        const text = encoded.get(entry) ?? encodeEntry(entry)
        encoded.set(entry, text)
        return text
      }
      if (last !== undefined) {
        const texts = changes.map(({ name, entry }) =>
          entry === undefined ? JSON.stringify(name) : `${JSON.stringify(name)}\n${encode(entry)}`,
        )
        put(changeKey(last), texts.join(BETWEEN_CHANGES))
      }
      for (let i = 0; i < from; i++) writes.del(changeKey(written[i] as number))
      for (let i = end; i < written.length; i++) writes.del(changeKey(written[i] as number))
      for (const [id, lease] of leases) {
        if (lease === undefined) writes.del(LEASE + id)
        else put(LEASE + id, encodeLease(lease))
      }
      for (const [name, entry] of entries) {
        if (entry === undefined) writes.del(NAME + name)
        else put(NAME + name, encode(entry))
      }
      put(HEAD, JSON.stringify(head))
      await writes.write({ sync: true })
    } catch (error) {
      throw storeError(error)
    }
    written.splice(end)
    written.splice(0, from)
  }

  /** After a failed write LevelDB's log may end in half a record, which would hide what is written after it. */
  async reopen(): Promise<void> {
    try {
      await this.close()
      await this.#openLevel(false)
    } catch (error) {
      throw storeError(error)
    }
  }

  async close(): Promise<void> {
    await this.#level?.close()
  }

  async #openLevel(createIfMissing: boolean): Promise<Level> {
    // It begins to open, and perhaps to create, as soon as it is constructed.
    this.#level = new ClassicLevel(this.#directory, { ...OPTIONS, createIfMissing })
    await this.#level.open()
    return this.#level
  }
}

/** Puts the last revision of each write into `written`. */
async function read(level: Level, written: number[]): Promise<Snapshot> {
  let head: JournalHead | undefined
  const leases: StoredLease[] = []
  const entries: StoredEntry[] = []
  const writes: Pair[] = []
  const iterator = level.iterator({ highWaterMarkBytes: PAGE_BYTES })
  try {
    for (let page = await iterator.nextv(PAGE); page.length > 0; page = await iterator.nextv(PAGE)) {
      for (const [key, value] of page) {
        const text = verify([key, value])
        if (key === HEAD) head = JSON.parse(text) as JournalHead
        else if (key.startsWith(CHANGE)) writes.push([key, text])
        else if (key.startsWith(LEASE)) leases.push(decodeLease(key.slice(LEASE.length), text))
        else if (key.startsWith(NAME)) entries.push(decodeEntry(key.slice(NAME.length), text))
        else throw damaged('it holds something that is not ours')
      }
    }
  } finally {
    await iterator.close()
  }
  const byName = new Map(entries.map(entry => [entry.name, entry]))
  const changes = writes.flatMap(([key, text]) => {
    const last = Number(key.slice(CHANGE.length))
    written.push(last)
    return decodeChanges(last, text, byName)
  })
  return whole(head, leases, entries, changes)
}

/** The snapshot, if nothing is missing. */
function whole(
  head: JournalHead | undefined,
  leases: StoredLease[],
  entries: StoredEntry[],
  all: StoredChange[],
): Snapshot {
  if (head === undefined) throw damaged('its head is missing')
  if (head.nameCount !== entries.length || head.leaseCount !== leases.length) {
    throw damaged('names or leases are missing')
  }
  const changes = all.filter(({ revision }) => revision > head.oldestRevision)
  const isGapless = changes.every(({ revision }, i) => revision === head.oldestRevision + 1 + i)
  if (!isGapless || changes.length !== head.revision - head.oldestRevision)
    throw damaged('changes are missing')
  return { head, leases, entries, changes }
}

function changeKey(revision: number): string {
  return CHANGE + String(revision).padStart(REVISION_DIGITS, '0')
}

function encodeLease({ owner, ttlMs }: StoredLease): string {
  return JSON.stringify([owner, ttlMs])
}

function decodeLease(id: string, text: string): StoredLease {
  const [owner, ttlMs] = JSON.parse(text) as [string, number]
  return { id, owner, ttlMs }
}

function encodeEntry({ lease, owner, key, revision, record }: StoredEntry): string {
  return `${JSON.stringify([lease, owner, key, revision])}\n${record}`
}

function decodeEntry(name: string, text: string): StoredEntry {
  const lineEnd = text.indexOf('\n')
  const [lease, owner, key, revision] = JSON.parse(text.slice(0, lineEnd)) as [string, string, string, number]
  return { name, lease, owner, key, revision, record: text.slice(lineEnd + 1) }
}

function decodeChanges(last: number, text: string, byName: ReadonlyMap<string, StoredEntry>): StoredChange[] {
  const texts = text.split(BETWEEN_CHANGES)
  return texts.map((change, i) => decodeChange(last - texts.length + 1 + i, change, byName))
}

/** The present entry of a name is kept once. */
function decodeChange(
  revision: number,
  text: string,
  byName: ReadonlyMap<string, StoredEntry>,
): StoredChange {
  const lineEnd = text.indexOf('\n')
  const name = JSON.parse(lineEnd < 0 ? text : text.slice(0, lineEnd)) as string
  if (lineEnd < 0) return { revision, part: 0, name, entry: undefined }
  const entry = byName.get(name)
  const isCurrent = entry?.revision === revision
  return { revision, part: 0, name, entry: isCurrent ? entry : decodeEntry(name, text.slice(lineEnd + 1)) }
}

function verify([key, value]: Pair): string {
  const text = value.slice(CHECKSUM_LENGTH)
  if (!value.startsWith(checksum(key, text))) throw damaged('a checksum does not match')
  return text
}

function checksum(key: string, text: string): string {
  return sha1(`${key}\0${text}`).slice(0, CHECKSUM_LENGTH)
}

/** In one call, if this Node has it (from 20.12 on): that is cheaper. */
const sha1 =
  (crypto.hash as typeof crypto.hash | undefined) === undefined
    ? (text: string) => crypto.createHash('sha1').update(text).digest('hex')
    : (text: string) => crypto.hash('sha1', text)

function damaged(what: string): StoreError {
  return new StoreError('ERR_STORE_CORRUPT', `the store is damaged: ${what}`)
}

/** LevelDB's errors name files; ours must not. */
function storeError(error: unknown): StoreError {
  if (error instanceof StoreError) return error
  const outer = error as Error & { code?: string; cause?: Error & { code?: string } }
  const { code, message } = outer.cause ?? outer
  if (code === 'LEVEL_LOCKED') {
    return new StoreError('ERR_STORE_LOCKED', 'another daemon has the store open')
  }
  if (error instanceof SyntaxError || code === 'LEVEL_CORRUPTION' || DAMAGE.test(message)) {
    return damaged('it cannot be read')
  }
  if (/does not exist \(create_if_missing is false\)/.test(message)) return damaged('its index is missing')
  const reason = message.split(': ').at(-1) ?? ''
  return new StoreError(
    'ERR_STORE_UNAVAILABLE',
    `the store cannot be used: ${reason.includes('/') ? code : reason}`,
  )
}
