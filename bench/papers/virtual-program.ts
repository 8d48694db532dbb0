/**
 * Programs with blocking calls, in virtual time. A program is a generator: it yields where such a call would wait, and goes
 * on when the doorbell of its interface rings.
 */
import type { SimulatedInterface } from '../../nic/simulated/index.ts'

/** Yields the room that the program waits for in its send queue; 0 if it waits for a frame. */
export type Steps<T = void> = Generator<number, T, undefined>

/** Runs `steps` on the host of `end`, whose doorbell is the program's from then on. */
export function runProgram(end: SimulatedInterface, steps: Steps, onEnd = (): void => {}): void {
  const goOn = (): void => {
    for (let next = steps.next(); next.done !== true; next = steps.next()) if (end.arm(next.value)) return
    onEnd()
  }
  end.setDoorbell(goOn)
  end.host.post(0, goOn)
}
