/** What a policy says for the drivers. The layers above read it. */
export interface PolicySettings {
  /** The key that hosts share for active messages over TCP. */
  readonly keyFile?: string | undefined
  /** The folder in which containers of one host find each other, or `off`. */
  readonly rendezvous?: string | undefined
  /** Whether other users are allowed to connect. */
  readonly hasUsers?: boolean
}

const NONE: PolicySettings = {}
let find: () => PolicySettings = () => NONE

/** `source` returns the settings of this program's policy. Environment variables override them. */
export function providePolicySettings(source: () => PolicySettings): void {
  find = source
}

export function policySettings(): PolicySettings {
  return find()
}
