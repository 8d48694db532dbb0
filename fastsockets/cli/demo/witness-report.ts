/** The report of one process's witness, and the conditions under which a run counts. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { FallbackReason } from '../../reasons.ts'

/** The folder in which each process leaves its report. */
export const WITNESS_VARIABLE = 'FASTSOCKETS_DEMO_WITNESS'

/** All sockets of one process that used the same wire for the same reason. */
export interface Sighting {
  readonly transport: string
  readonly reason?: FallbackReason
  sockets: number
  bytesIn: number
  bytesOut: number
}

/** The reports of all processes of one run. */
export function readSightings(folder: string): Sighting[] {
  return readdirSync(folder).flatMap(
    name => JSON.parse(readFileSync(join(folder, name), 'utf8')) as Sighting[],
  )
}

/** Throws unless every socket that carried data used `wire`, and together they carried at least `bytesMin`. */
export function assertWire(
  run: string,
  sightings: readonly Sighting[],
  wire: string,
  bytesMin: number,
): void {
  const carriers = sightings.filter(({ bytesIn, bytesOut }) => bytesIn + bytesOut > 0)
  const strangers = carriers.filter(({ transport }) => transport !== wire)
  // A server knows only that the client came over TCP: the client's report has the reason.
  const stranger = strangers.find(({ reason }) => reason?.code !== 'ACCEPTED') ?? strangers[0]
  if (stranger !== undefined) {
    const why = stranger.reason === undefined ? '' : `: ${stranger.reason.text}`
    throw new Error(`${run} was not on ${wire}, but on ${stranger.transport}${why}`)
  }
  for (const direction of ['bytesIn', 'bytesOut'] as const) {
    const seen = carriers.reduce((sum, sighting) => sum + sighting[direction], 0)
    if (seen < bytesMin) throw new Error(`${run}: only ${seen} bytes of ${bytesMin} were seen on ${wire}`)
  }
}
