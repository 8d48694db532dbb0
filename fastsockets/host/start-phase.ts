/** Whether sockets of this thread were Node's own at first, without a record (relink/light-phase.ts). They may become fast. */
export const startPhase = { wasLight: false }
