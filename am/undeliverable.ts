/** Reasons for which a message comes back to handler 0 of its sender. A RETURN carries the number. */
export const UNDELIVERABLE = {
  /** The sender mapped the endpoint with a tag that is not the endpoint's. */
  BAD_TAG: 1,
  /** The endpoint has no handler with that index. */
  NO_SUCH_HANDLER: 2,
  /** No endpoint answered to the name when it was mapped. */
  NO_SUCH_ENDPOINT: 3,
  /** A long message, or a get, lies outside the endpoint's segment. */
  OUT_OF_BOUNDS: 4,
  /** The payload is longer than the endpoint accepts. */
  TOO_LONG: 5,
  /** The peer's process died, or was cut off because it broke the protocol. It may have handled the message before. */
  PEER_DEAD: 6,
  /** The peer closed its endpoint. It may have handled the message before. */
  PEER_CLOSED: 7,
} as const

export type UndeliverableReason = keyof typeof UNDELIVERABLE

const NAMES = new Map<number, UndeliverableReason>(
  Object.entries(UNDELIVERABLE).map(([name, number]) => [number, name as UndeliverableReason]),
)

/** The reason for a number from the wire, or undefined if there is none. */
export function undeliverableReason(number: number): UndeliverableReason | undefined {
  return NAMES.get(number)
}
