/** What the daemon's page shows: all owners' names, leases and watchers, up to a limit. Types only, as the browser's part has them, too. */
export interface DaemonView {
  readonly names: readonly {
    readonly name: string
    readonly endpoint: string
    readonly owner: string
    readonly lease: string
    readonly revision: number
  }[]
  readonly leases: readonly {
    readonly lease: string
    readonly owner: string
    readonly ttlMs: number
    /** Undefined if the daemon does not keep the time. */
    readonly expiresInMs: number | undefined
    readonly names: number
  }[]
  readonly watchers: readonly {
    readonly owner: string
    /** Names, and prefixes with a `*` behind them. */
    readonly watched: readonly string[]
    readonly isCurrent: boolean
  }[]
  /** True if there are more. */
  readonly isCut: boolean
}
