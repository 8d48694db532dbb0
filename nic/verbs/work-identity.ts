/** The identity of a request, in its completion: 32 bits of its own, its kind, and the slot of its connection. */
export const IDENTITY_KIND_SHIFT = 24
export const SLOT_MASK = 0xff_ffff
/** In place of a slot: a receive of the shared queue. The completion names the queue pair of its connection. */
export const SLOT_SHARED = SLOT_MASK

export const WORK_RECEIVE = 1
export const WORK_SEND = 2
export const WORK_ONE_SIDED = 3
export const WORK_HELLO = 4
export const WORK_BYE = 5
/** A receive with memory, of an iWARP device. */
export const WORK_NOTICE = 6

export function identityOf(kind: number, slot: number): number {
  return (kind << IDENTITY_KIND_SHIFT) | slot
}
