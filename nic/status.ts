/**
 * Results of the operations that may be refused in normal running. A refusal is a value, never an exception:
 * `OK` is 0, everything else is negative, and `reserve` puts its offsets in the non-negative half.
 */
export const OK = 0
/** No room now; the same call can succeed after the peer has made progress. */
export const NO_RESOURCE = -1
/** No credit left for this destination; it comes back with the peer's acknowledgements. */
export const NO_CREDIT = -2
/** This side has closed; nothing will succeed any more. */
export const CLOSED = -3
/** The peer broke the protocol, or its memory is gone; nothing will succeed any more. */
export const BROKEN = -4
/** The driver cannot do this operation at all; its capabilities say so beforehand. */
export const UNSUPPORTED = -5
/** An offset or a length lies outside a registration. */
export const OUT_OF_BOUNDS = -6

export type Status =
  | typeof OK
  | typeof NO_RESOURCE
  | typeof NO_CREDIT
  | typeof CLOSED
  | typeof BROKEN
  | typeof UNSUPPORTED
  | typeof OUT_OF_BOUNDS
