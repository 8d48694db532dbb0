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
import { createHash } from 'node:crypto'
import { mkdir, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { ClassicLevel } from 'classic-level'
import { type Batch, emptySnapshot, type Journal, type JournalHead, type Snapshot } from './journal.ts'
import { type StoredChange, type StoredEntry, type StoredLease, StoreError } from './store.ts'

const HEAD = 'head'
const CHANGE = 'c/'
const LEASE = 'l/'
const NAME = 'n/'
const REVISION_DIGITS = 16
/** JSON holds no line end, and what we write no empty line. */
const BETWEEN_CHANGES = '\n\n'
const CHECKSUM_LENGTH = 8
/** What is read at once while loading: pairs, and their bytes. */
const PAGE = 2000
const PAGE_BYTES = 1024 * 1024
const DAMAGED = 'damaged'
/** What LevelDB says of files that are cut short or missing; other failures of input and output are the system's. */
const DAMAGE = /: (Invalid argument|No such file or directory)$/
const OPTIONS = { keyEncoding: 'utf8', valueEncoding: 'utf8', compression: false } as const

type Pair = [key: string, value: string]
type Write = { type: 'put'; key: string; value: string } | { type: 'del'; key: string }

export class LevelJournal implements Journal {
  readonly #directory: string
  #level: ClassicLevel<string, string> | undefined
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
      await level.batch([put(HEAD, JSON.stringify(snapshot.head))], { sync: true })
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
    const writes: Write[] = []
    const last = changes.at(-1)?.revision
    if (last !== undefined) {
      writes.push(put(changeKey(last), changes.map(encodeChange).join(BETWEEN_CHANGES)))
      written.push(last)
    }
    let from = 0
    while (from < written.length && (written[from] as number) <= head.oldestRevision) from += 1
    let end = written.length
    while (end > from && (written[end - 1] as number) > head.revision) end -= 1
    const forgotten = [...written.slice(0, from), ...written.slice(end)]
    writes.push(...forgotten.map(revision => del(changeKey(revision))))
    for (const [id, lease] of leases) {
      writes.push(lease === undefined ? del(LEASE + id) : put(LEASE + id, encodeLease(lease)))
    }
    for (const [name, entry] of entries) {
      writes.push(entry === undefined ? del(NAME + name) : put(NAME + name, encodeEntry(entry)))
    }
    writes.push(put(HEAD, JSON.stringify(head)))
    try {
      await (this.#level as ClassicLevel<string, string>).batch(writes, { sync: true })
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

  async #openLevel(createIfMissing: boolean): Promise<ClassicLevel<string, string>> {
    // It begins to open, and perhaps to create, as soon as it is constructed.
    this.#level = new ClassicLevel(this.#directory, { ...OPTIONS, createIfMissing })
    await this.#level.open()
    return this.#level
  }
}

/** Puts the last revision of each write into `written`. */
async function read(level: ClassicLevel<string, string>, written: number[]): Promise<Snapshot> {
  let head: JournalHead | undefined
  const leases: StoredLease[] = []
  const entries: StoredEntry[] = []
  const changes: StoredChange[] = []
  const iterator = level.iterator({ highWaterMarkBytes: PAGE_BYTES })
  try {
    for (let page = await iterator.nextv(PAGE); page.length > 0; page = await iterator.nextv(PAGE)) {
      for (const [key, value] of page) {
        const text = verify([key, value])
        if (key === HEAD) head = JSON.parse(text) as JournalHead
        else if (key.startsWith(CHANGE)) {
          const last = Number(key.slice(CHANGE.length))
          written.push(last)
          changes.push(...decodeChanges(last, text))
        } else if (key.startsWith(LEASE)) leases.push(decodeLease(key.slice(LEASE.length), text))
        else if (key.startsWith(NAME)) entries.push(decodeEntry(key.slice(NAME.length), text))
        else throw damaged('it holds something that is not ours')
      }
    }
  } finally {
    await iterator.close()
  }
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

function encodeChange({ name, entry }: StoredChange): string {
  return entry === undefined ? JSON.stringify(name) : `${JSON.stringify(name)}\n${encodeEntry(entry)}`
}

function decodeChanges(last: number, text: string): StoredChange[] {
  const texts = text.split(BETWEEN_CHANGES)
  return texts.map((change, i) => decodeChange(last - texts.length + 1 + i, change))
}

function decodeChange(revision: number, text: string): StoredChange {
  const lineEnd = text.indexOf('\n')
  const name = JSON.parse(lineEnd < 0 ? text : text.slice(0, lineEnd)) as string
  const entry = lineEnd < 0 ? undefined : decodeEntry(name, text.slice(lineEnd + 1))
  return { revision, part: 0, name, entry }
}

function put(key: string, text: string): Write {
  return { type: 'put', key, value: checksum(key, text) + text }
}

function del(key: string): Write {
  return { type: 'del', key }
}

function verify([key, value]: Pair): string {
  const text = value.slice(CHECKSUM_LENGTH)
  if (!value.startsWith(checksum(key, text))) throw damaged('a checksum does not match')
  return text
}

function checksum(key: string, text: string): string {
  return createHash('sha1').update(key).update('\0').update(text).digest('hex').slice(0, CHECKSUM_LENGTH)
}

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
