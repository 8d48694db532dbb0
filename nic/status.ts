/**
 * Results of operations that may be refused in normal running. A refusal is a value, never an exception: `OK` is 0, all
 * others are negative. `reserve` returns an offset, which is 0 or more, or one of the negative values.
 */
export const OK = 0
/** No room now; the same call can succeed after the peer has made progress. */
export const NO_RESOURCE = -1
/** No credit left for this destination. The peer's acknowledgements return credits. */
export const NO_CREDIT = -2
/** This side has closed. No later operation succeeds. */
export const CLOSED = -3
/** The peer violated the protocol, or its memory is gone. No later operation succeeds. */
export const BROKEN = -4
/** The driver does not support this operation: see `Capabilities`. */
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
