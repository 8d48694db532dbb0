/** Where the snapshots come from: the processes that run, or a file of recorded ones. */
import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { PolicyError } from '../../policy/policy-error.ts'
import type { ProcessStatus } from '../../status/decode-status.ts'
import { readAllStatus } from '../../status/read-status.ts'
import { describeOwnPolicy } from '../policy/describe-policy.ts'
import { withRates } from '../status/rates.ts'
import { NamesView } from './names-view.ts'
import { makeSnapshot, messagesOf } from './snapshot.ts'
import type { Snapshot } from './snapshot-types.ts'

const INTERVAL_MS = 1000
const LINE_LENGTH_MAX = 16 * 1024 * 1024

/** One a second, until `signal`. */
export async function* liveSnapshots(signal: AbortSignal): AsyncGenerator<Snapshot> {
  const names = new NamesView()
  names.start()
  try {
    let before = look()
    let beforeMs = performance.now()
    let messagesBefore = messagesOf(withRates(before, before, INTERVAL_MS))
    while (await pause(INTERVAL_MS, signal)) {
      const now = look()
      const nowMs = performance.now()
      const elapsedMs = nowMs - beforeMs
      const rated = withRates(now, before, elapsedMs)
      const surroundings = { policy: policyLines(), names: names.now }
      yield makeSnapshot(rated, surroundings, { atMs: Date.now(), elapsedMs, messagesBefore })
      messagesBefore = messagesOf(rated)
      before = now
      beforeMs = nowMs
    }
  } finally {
    names.close()
  }
}

/**
 * Those of a file that `--record` has written, at the pace at which they were made. Throws an Error that names the first
 * line that is none.
 */
export async function* recordedSnapshots(path: string, signal: AbortSignal): AsyncGenerator<Snapshot> {
  let lastMs: number | undefined
  let number = 0
  for await (const line of createInterface({ input: createReadStream(path), crlfDelay: Infinity })) {
    number++
    if (line.trim() === '') continue
    const snapshot = parseSnapshot(line, `${path}:${number}`)
    const elapsedMs =
      lastMs === undefined ? 0 : Math.min(Math.max(0, snapshot.atMs - lastMs), 10 * INTERVAL_MS)
    if (!(await pause(elapsedMs, signal))) return
    lastMs = snapshot.atMs
    yield snapshot
  }
}

function parseSnapshot(line: string, place: string): Snapshot {
  try {
    if (line.length > LINE_LENGTH_MAX) throw new Error('it is too long')
    const value = JSON.parse(line) as Partial<Snapshot> | null
    const isWhole =
      Array.isArray(value?.programs) &&
      Array.isArray(value.edges) &&
      Array.isArray(value.reasons) &&
      Array.isArray(value.policy) &&
      Array.isArray(value.names?.names) &&
      typeof value.totals?.atMs === 'number' &&
      typeof value.atMs === 'number'
    if (!isWhole) throw new Error('parts are missing')
    return value as Snapshot
  } catch (error) {
    throw new Error(`${place} is no snapshot of fastsockets ui --record: ${(error as Error).message}`)
  }
}

function look(): ProcessStatus[] {
  return readAllStatus().filter(({ pid }) => pid !== process.pid)
}

function policyLines(): readonly string[] {
  try {
    return describeOwnPolicy()
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error
    return error.message.split('\n')
  }
}

/** False if `signal` ended it. */
async function pause(ms: number, signal: AbortSignal): Promise<boolean> {
  try {
    await sleep(ms, undefined, { signal })
    return true
  } catch {
    return false
  }
}
