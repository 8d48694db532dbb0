/** What the program `zcopy-peer` says of the bytes that have come. */
import type { Child } from './child.ts'
import { eventually } from './until.ts'

export interface Report {
  readonly received: number
  readonly isIntact: boolean
  readonly isWritten: boolean
  readonly ended?: string
  readonly paused: boolean
  readonly counts?: { zcopyBytesIn: number; zcopyBytesOut: number; bytesBuffered: number }
}

export async function report(peer: Child): Promise<Report> {
  peer.send({ report: 1 })
  return await peer.receive<Report>()
}

export async function reportWhen(
  peer: Child,
  what: string,
  holds: (report: Report) => boolean,
): Promise<Report> {
  return await eventually(what, async () => {
    const now = await report(peer)
    return holds(now) && now
  })
}
