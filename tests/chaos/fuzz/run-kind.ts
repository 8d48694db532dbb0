/**
 * Attacks one victim, and looks whether it kept its promises: nothing is thrown, no turn stalls, nothing is left behind, and
 * an honest peer is served before and after.
 */
import { liveMemory } from '../../support/garbage.ts'
import { Random } from '../../support/random.ts'
import { descriptorCount, descriptorTargets } from '../../support/resources.ts'
import { eventually } from '../../support/until.ts'
import type { Attack, Kind, Victim } from './kind.ts'

/** Inputs before the measurement: the first of them bring what stays. */
const WARM_UP_MAX = 2000
/** Far more than any turn takes, and far less than a loop whose length a stranger chose. */
const STALL_MAX_MS = 500
const GROWTH_MAX = 8 * 2 ** 20
const COMPLAINTS_MAX = 10

export interface Outcome {
  readonly counts: Readonly<Record<string, number>>
  /** What was wrong; nothing, it is hoped. */
  readonly complaints: readonly string[]
  readonly longestMs: number
  readonly growth: number
}

export async function runKind(kind: Kind, seed: number, inputs: number): Promise<Outcome> {
  const counts: Record<string, number> = {}
  const complaints: string[] = []
  let longestMs = 0
  const complain = (what: string): void => {
    if (complaints.length < COMPLAINTS_MAX) complaints.push(what)
  }
  const attackOf = (random: Random, inputs: number): Attack => ({
    random,
    inputs,
    victim: act => {
      const wallMs = performance.now()
      const usedUs = process.cpuUsage()
      try {
        return act()
      } finally {
        longestMs = Math.max(longestMs, turnMs(wallMs, usedUs))
      }
    },
    count: (what, more = 1) => {
      counts[what] = (counts[what] ?? 0) + more
    },
    wrong: complain,
  })
  const victim: Victim = await kind.open()
  let growth = 0
  try {
    await victim.honest()
    await victim.attack(attackOf(new Random(seed + 1), Math.min(WARM_UP_MAX, inputs)))
    const [memory, descriptors] = [await liveMemory(), descriptorCount()]
    const targets = descriptorTargets()
    for (const what in counts) counts[what] = 0
    longestMs = 0
    await victim.attack(attackOf(new Random(seed), inputs))
    await victim.honest()
    await eventually('the descriptors to go', () => descriptorCount() <= descriptors).catch(() => {
      const more = [...descriptorTargets()].filter(([fd, target]) => targets.get(fd) !== target)
      complain(`${descriptorCount()} descriptors, ${descriptors} before; new: ${more.join(' ')}`)
    })
    growth = (await liveMemory()) - memory
  } catch (error) {
    complain((error as Error).stack ?? String(error))
  }
  await victim.close?.()
  for (const what of kind.reaches) if (!counts[what]) complain(`nothing got to "${what}"`)
  if (longestMs > STALL_MAX_MS) complain(`a turn took ${longestMs.toFixed(0)} ms`)
  if (growth > GROWTH_MAX) complain(`${growth} bytes more`)
  return { counts, complaints, longestMs, growth }
}

/** Another process that has the core does not count, nor do other threads of this one. */
function turnMs(wallMs: number, usedUs: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(usedUs)
  return Math.min(performance.now() - wallMs, (user + system) / 1000)
}
