/**
 * The gain of each technique: the program with the technique switched off, or with other settings, compared with the
 * program as it ships. As figures 11 and 12 of the EMP paper, and figure 3 of WSDLite for the threshold of ZCopy.
 */
import { AS_SHIPPED, type Carrier, VARIANTS, type Variant } from '../ablation-variants.ts'
import { contestant as amEvents } from '../contestants/am-events.ts'
import type { Contestant } from '../contestants/contestant.ts'
import { contestant as netRelinked } from '../contestants/net-relinked.ts'
import { decodeLatencies, type Half, type Pair, withPair } from '../half.ts'
import { PATIENCE } from '../half-settings.ts'
import { measureInRounds } from '../rounds.ts'
import { timesOf } from '../sizes.ts'
import type { Sample, Suite, SuiteContext } from '../suite.ts'
import type { Workload } from '../warm-up.ts'

const CARRIERS: Readonly<Record<Carrier, Contestant>> = {
  'net-relinked': netRelinked,
  'am-events': amEvents,
}

/** There are a hundred in a round, each with new processes. */
const TIMES = { warmUpMs: 150, ms: 60 }

export const ablation: Suite = {
  name: 'ablation',
  what: 'what receive posting, ZCopy, delayed acks, credits, spinning, ring size and coalescing are worth',
  quickSeconds: 4,
  contestants: [...new Set(VARIANTS.map(({ name }) => name))],
  baseline: AS_SHIPPED,
  run: async context => {
    const wanted = VARIANTS.filter(({ name }) => context.wants(name))
    const variants = wanted.filter(({ isQuick }) => isQuick || !context.isQuick)
    for (const { name, isQuick } of wanted) {
      if (context.isQuick && !isQuick) context.skip(name, '--quick takes one step of each sweep')
    }
    const trials = variants.map(variant => ({
      contestant: variant.name,
      measure: () => measure(variant, context),
    }))
    return await measureInRounds(context, 'ablation', trials, AS_SHIPPED)
  },
}

/**
 * Each workload has a pair of its own: what another has made warm, or large, would count for some variants and not
 * for others.
 */
async function measure(variant: Variant, context: SuiteContext): Promise<Sample[]> {
  const { over, environment, workloads } = variant
  const chosen = context.isQuick ? [workloads[0] as Workload] : workloads
  const samples: Sample[] = []
  for (const workload of chosen) {
    const use = ({ client }: Pair): Promise<Sample> => sampleOf(workload, over, client, context)
    samples.push(await withPair(CARRIERS[over], use, { ...PATIENCE, ...environment }))
  }
  return samples
}

async function sampleOf(
  { kind, size }: Workload,
  over: Carrier,
  client: Half,
  context: SuiteContext,
): Promise<Sample> {
  const parameters = { over, size }
  const times = context.isQuick ? timesOf(context) : TIMES
  if (kind === 'pingPong') {
    const latencies = decodeLatencies(await client.ask({ ask: kind, size, ...times }))
    const value = latencies.percentiles().p50
    return { parameters, metric: 'roundTrip', unit: 'us', better: 'lower', value, latencies }
  }
  const { bytes, ms } = await client.ask({ ask: kind, size, ...times })
  return { parameters, metric: 'rate', unit: 'B/s', better: 'higher', value: bytes / (ms / 1000) }
}
