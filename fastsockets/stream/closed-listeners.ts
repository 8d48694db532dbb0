/**
 * How many listeners this thread has closed, visible to its peers. A client that was accepted once, and sees that no
 * listener has closed since, knows that its server still listens (decision 0111).
 */
import type { VirtualInterface } from '../../nic/index.ts'

let count = 0
const ends = new Set<VirtualInterface>()

/** Shows the peer the count, until `hideClosedListeners`. */
export function showClosedListeners(end: VirtualInterface): void {
  ends.add(end)
  end.showWord?.(count)
}

export function hideClosedListeners(end: VirtualInterface): void {
  ends.delete(end)
}

/** Call before any peer can learn that the listener is closed. */
export function countClosedListener(): void {
  count = (count + 1) | 0
  for (const end of ends) end.showWord?.(count)
}
