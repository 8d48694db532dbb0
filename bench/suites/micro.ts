/** The time of single operations of the hot path, in one process, by the package `benchmark`. */
import { OPERATIONS } from '../micro/operations.ts'
import { missingPackage } from '../missing-package.ts'
import { measureInRounds } from '../rounds.ts'
import type { Suite } from '../suite.ts'

const SECONDS = 0.25
const QUICK_SECONDS = 0.02
const SAMPLES_MIN = 10
const QUICK_SAMPLES_MIN = 2

export const micro: Suite = {
  name: 'micro',
  what: 'operations of the hot path, alone and in one process',
  quickSeconds: 1,
  contestants: OPERATIONS.map(({ name }) => name),
  packages: ['benchmark'],
  // They are not compared with each other: nothing has this name.
  baseline: 'none',
  run: async context => {
    const missing = await missingPackage('benchmark')
    const wanted = OPERATIONS.filter(({ name }) => context.wants(name))
    if (missing !== undefined) {
      for (const { name } of wanted) context.skip(name, missing)
      return []
    }
    const { default: Benchmark } = await import('benchmark')
    const options = context.isQuick
      ? { minTime: QUICK_SECONDS, maxTime: QUICK_SECONDS, minSamples: QUICK_SAMPLES_MIN }
      : { maxTime: SECONDS, minSamples: SAMPLES_MIN }
    const trials = wanted.map(({ name, prepare }) => ({
      contestant: name,
      measure: async () => {
        const run = new Benchmark(name, prepare(), options).run({ async: false })
        if (run.error !== undefined) throw run.error
        const value = run.stats.mean * 1e9
        return [{ parameters: {}, metric: 'time', unit: 'ns', better: 'lower' as const, value }]
      },
    }))
    return await measureInRounds(context, 'micro', trials, 'none')
  },
}
