/**
 * How many listeners this thread has closed, shown to its peers. A client that has been accepted once, and sees that none was
 * closed since, knows without asking that its server still listens (decision 0111).
 */
import type { VirtualInterface } from '../../nic/index.ts'

let count = 0
const ends = new Set<VirtualInterface>()

/** From now on the peer sees the count; until `hideClosedListeners`. */
export function showClosedListeners(end: VirtualInterface): void {
  ends.add(end)
  end.showWord?.(count)
}

export function hideClosedListeners(end: VirtualInterface): void {
  ends.delete(end)
}

/** Before anybody can hear that the listener is closed. */
export function countClosedListener(): void {
  count = (count + 1) | 0
  for (const end of ends) end.showWord?.(count)
}
