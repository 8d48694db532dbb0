/** What one reliable interface has done and seen so far, in frames. */
export class ReliabilityStats {
  sent = 0
  /** Frames sent again because they were missing. */
  resent = 0
  /** Time-outs in which no acknowledgement arrived. */
  timeouts = 0
  /** Acknowledgements sent as frames of their own. */
  acksSent = 0
  delivered = 0
  duplicates = 0
  /** Frames that came before their turn. */
  early = 0
  /** Frames with a wrong checksum or length. */
  damaged = 0
  /** Intact frames that no peer that keeps the rules can send. */
  refused = 0
}
