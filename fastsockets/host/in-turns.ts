/** Work on very many sockets, a part in each turn of the event loop: no turn is long, however many there are. */
import { makeHidden } from '../../nic/own-resources.ts'
import { setImmediate } from '../../nic/real-time.ts'

/** Sockets of one turn. To ask the kernel for the names of one takes some 10 us, more while V8 has not compiled what asks. */
export const SOCKETS_PER_TURN = 256

/** Calls `handle` for a first part of `all` at once, for the others in the next turns, in order. Then calls `onDone`. */
export function inTurns<T>(
  all: readonly T[],
  handle: (part: readonly T[]) => void,
  onDone: () => void = () => {},
): void {
  let at = 0
  const goOn = (): void => {
    const part = all.slice(at, at + SOCKETS_PER_TURN)
    at += part.length
    handle(part)
    if (at < all.length) makeHidden(() => setImmediate(goOn))
    else onDone()
  }
  goOn()
}
