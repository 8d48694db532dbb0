/** Whether sockets of this thread were Node's own at first, without a record (relink/light-phase.ts). They may become fast. And whether there was a rendezvous folder then. */
export const startPhase = { wasLight: false, hasFolder: false }
