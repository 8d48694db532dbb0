/** What the server of `fastsockets ui` sends to the page, once a second, as JSON. Rates are per second, sizes bytes. */
import type { DaemonView } from '../../../nameservice/daemon-view.ts'

/** One thread of a relinked process, or a process that is not relinked and connected to one. */
export interface ShownProgram {
  /** `PID` or `PID.THREAD`; `host ADDRESS` for the programs of another host or container. */
  readonly id: string
  readonly pid: number | undefined
  readonly program: string
  readonly uid: number | undefined
  readonly isRelinked: boolean
  readonly startMs: number | undefined
  readonly listeners: readonly ShownListener[]
  readonly socketCount: number
  readonly opened: number
  readonly inRate: number
  readonly outRate: number
  /** Messages that its poller has handled since the start. */
  readonly messages: number
}

export interface ShownListener {
  readonly local: string
  readonly reason?: string
  readonly acceptedFast: number
  readonly acceptedTcp: number
}

/** All connections from one program to one place of another, over one wire. */
export interface ShownEdge {
  /** Ids of programs. */
  readonly from: string
  readonly to: string
  /** Where the client has connected to; empty if only the server is known. */
  readonly place: string
  readonly wire: string
  /** Why it is not fast. */
  readonly reason?: string
  readonly count: number
  readonly bytesIn: number
  readonly bytesOut: number
  readonly inRate: number
  readonly outRate: number
}

/** One reason why connections are not fast. */
export interface ShownReason {
  readonly code: string
  readonly text: string
  readonly remedy: string
  /** Connections so far, of the programs shown. */
  readonly count: number
}

export type ShownName = Omit<DaemonView['names'][number], 'owner'>

/** What the name-service daemon has, or why nothing is known. */
export interface ShownNames {
  readonly problem?: string
  readonly names: readonly ShownName[]
  readonly leases: readonly { readonly lease: string; readonly owner: string; readonly ttlMs: number }[]
  readonly isCut: boolean
}

/** What one second adds to the charts. */
export interface Totals {
  readonly atMs: number
  readonly fast: number
  readonly slow: number
  readonly byteRate: number
  readonly messageRate: number
}

export interface Snapshot {
  readonly atMs: number
  readonly uid: number
  readonly programs: readonly ShownProgram[]
  readonly edges: readonly ShownEdge[]
  /** True if there are more than the page shows. */
  readonly isCut: boolean
  readonly reasons: readonly ShownReason[]
  /** The policy in force for programs that this user starts, in lines. */
  readonly policy: readonly string[]
  readonly names: ShownNames
  readonly totals: Totals
}

/** What the name-service daemon sends to its page, once a second. */
export interface NamesSnapshot extends DaemonView {
  readonly atMs: number
}
