/** What a simulated network does to frames. Rates are shares of the frames, 0 … 1. */
export interface NetworkFaults {
  loss: number
  duplication: number
  /** 1 to 4 bits are flipped. */
  corruption: number
  /** Later frames overtake it. */
  reordering: number
  /** Most microseconds by which a reordered frame is late. */
  reorderUs: number
}

export const NO_FAULTS: NetworkFaults = {
  loss: 0,
  duplication: 0,
  corruption: 0,
  reordering: 0,
  reorderUs: 200,
}

/** How often each kind of fault has struck, in frames; `stalls` and what follows count orders of the caller. */
export class FaultCounters {
  lost = 0
  duplicated = 0
  corrupted = 0
  reordered = 0
  /** Frames, and segments of TCP, that met a partition, a dead NIC or a dead link; frames dropped for want of a receive descriptor. */
  partitioned = 0
  deadEnds = 0
  overruns = 0
  stalls = 0
  pauses = 0
  /** Processes that ended in order, processes whose NIC died, links of machines that died, and processes that were killed. */
  ends = 0
  nicDeaths = 0
  linkDeaths = 0
  kills = 0
}

/** Whether the network keeps every frame, once and in order. */
export function isFaultless(faults: NetworkFaults): boolean {
  return faults.loss + faults.duplication + faults.corruption + faults.reordering === 0
}
