/**
 * Measured thresholds, in the user's cache folder:
 *
 *   { "version": 1, "thresholds": { "shm, AMD EPYC …, Linux 6.1": { "bytes": 131072, "measuredMs": 1732240000000 } } }
 *
 * `bytes` is null where everything is copied. The file may be deleted at any time; an unreadable file counts as empty.
 */
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, release, type } from 'node:os'
import { dirname, join } from 'node:path'
import { openLog } from '../../../nic/index.ts'
import { dateNow } from '../../../nic/real-time.ts'
import { readTrustedFile } from '../../../nic/trusted-file.ts'
import { home } from '../../host/home.ts'

const VERSION = 1
/** A kernel or a processor's microcode may have changed: measure again. */
const EXPIRES_MS = 30 * 24 * 3_600_000
/** Most kinds of peers; the oldest are dropped. */
const KINDS_MAX = 64
const SIZE_MAX = 64 * 1024

const log = openLog('fastsockets:zcopy')

interface Remembered {
  readonly bytes: number | null
  readonly measuredMs: number
}

/** Undefined without such a folder. */
export function thresholdPath(env: NodeJS.ProcessEnv = process.env): string | undefined {
  const folder = home()
  const cacheFolder = env.XDG_CACHE_HOME || (folder && join(folder, '.cache'))
  return cacheFolder ? join(cacheFolder, 'fastsockets', 'zcopy.json') : undefined
}

/** In bytes; Infinity if everything is to be copied; undefined if unknown or expired. */
export function readThreshold(driver: string, nowMs = dateNow()): number | undefined {
  const found = readAll()[kindOf(driver)]
  if (found === undefined || nowMs - found.measuredMs > EXPIRES_MS || found.measuredMs > nowMs)
    return undefined
  return found.bytes ?? Number.POSITIVE_INFINITY
}

export function writeThreshold(driver: string, bytes: number, nowMs = dateNow()): void {
  const path = thresholdPath()
  if (path === undefined) return
  const measured = { bytes: Number.isFinite(bytes) ? bytes : null, measuredMs: nowMs }
  const others = Object.entries(readAll())
    .filter(([kind]) => kind !== kindOf(driver))
    .sort(([, a], [, b]) => b.measuredMs - a.measuredMs)
    .slice(0, KINDS_MAX - 1)
  const thresholds = Object.fromEntries([...others, [kindOf(driver), measured]])
  const temporary = `${path}.${process.pid}`
  try {
    makeFolder(dirname(dirname(path)))
    makeFolder(dirname(path))
    const text = `${JSON.stringify({ version: VERSION, thresholds }, undefined, 2)}\n`
    rmSync(temporary, { force: true })
    // Follows no link, and writes to no existing file.
    writeFileSync(temporary, text, { flag: 'wx', mode: 0o600 })
    renameSync(temporary, path)
  } catch (error) {
    log('cannot remember the threshold: %s', (error as Error).message)
    removeQuietly(temporary)
  }
}

/** The rename may fail, for example because of a folder in its place. */
function removeQuietly(path: string): void {
  try {
    rmSync(path, { force: true })
  } catch {
    // Then it could not be made either.
  }
}

/** Not by `recursive`, which never ends in some folders of the kernel (Node 20). */
function makeFolder(path: string): void {
  if (!existsSync(path)) mkdirSync(path, { mode: 0o700 })
}

/** Everything that the costs depend on. */
function kindOf(driver: string): string {
  return `${driver}, ${cpus()[0]?.model ?? 'unknown processor'}, ${type()} ${release()}`
}

function readAll(): Record<string, Remembered> {
  const path = thresholdPath()
  if (path === undefined) return {}
  try {
    const content: unknown = JSON.parse(readTrustedFile(path, { sizeMax: SIZE_MAX }).toString())
    if (!isContent(content)) return {}
    return Object.fromEntries(Object.entries(content.thresholds).filter(([, value]) => isRemembered(value)))
  } catch {
    return {}
  }
}

function isContent(value: unknown): value is { thresholds: Record<string, Remembered> } {
  const content = value as { version?: unknown; thresholds?: unknown } | null | undefined
  return content?.version === VERSION && typeof content.thresholds === 'object' && content.thresholds !== null
}

function isRemembered(value: unknown): value is Remembered {
  const { bytes, measuredMs } = (value ?? {}) as Partial<Remembered>
  return (bytes === null || (Number.isSafeInteger(bytes) && Number(bytes) > 0)) && Number.isFinite(measuredMs)
}
