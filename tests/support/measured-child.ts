/** Starts programs that measure their own stalls for the test, without a change to them. */
import type { Child } from './child.ts'

/** To be given to a program by `--import`. */
export const METER = new URL('./metered.js', import.meta.url)
/** What the machine did meanwhile is not the same each time. */
export const RUNS = 3

/** The least that the longest turn of `child` was, of a few times that the same was done to it. */
export async function longestTurnMs(child: Child, attack: () => Promise<void>): Promise<number> {
  let leastMs = Number.POSITIVE_INFINITY
  for (let run = 0; run < RUNS; run++) {
    await ask(child, { meter: 'begin' })
    await attack()
    leastMs = Math.min(leastMs, await ask(child, { meter: 'end' }))
  }
  return leastMs
}

/** What the program itself has to say is passed over. */
async function ask(child: Child, question: object): Promise<number> {
  child.send(question)
  for (;;) {
    const { longestMs } = await child.receive<{ longestMs?: number }>()
    if (longestMs !== undefined) return longestMs
  }
}

/** Makes it stand still and work for so long, to see that this is seen. */
export function block(child: Child, forMs: number): void {
  child.send({ meter: 'block', forMs })
}
