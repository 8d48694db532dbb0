export interface StartPhase {
  /** Sockets of this thread were Node's own at first, without a record (relink/light-phase.ts). They may become fast. */
  wasLight: boolean
  /** The rendezvous folder of that phase, whether it exists or not: there is no policy then. */
  folder: string | undefined
  /** It could be used at the start. */
  hasFolder: boolean
}

export const startPhase: StartPhase = { wasLight: false, folder: undefined, hasFolder: false }
