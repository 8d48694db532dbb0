/** What one reliable interface has done and seen so far, in frames. */
export class ReliabilityStats {
  sent = 0
  /** Sent again because they were missed. */
  resent = 0
  /** Times that nothing moved for a time-out. */
  timeouts = 0
  /** Acknowledgements that found nothing to ride on. */
  acksSent = 0
  delivered = 0
  duplicates = 0
  /** Came before their turn. */
  early = 0
  /** Whose checksum or length was wrong. */
  damaged = 0
  /** Intact, but not what a peer that keeps the rules can send. */
  refused = 0
}
