/**
 * What each technique is worth: the same program with the technique switched off, or set to other numbers, beside the
 * program as it ships. As figures 11 and 12 of the EMP paper, and figure 3 of WSDLite for the threshold of ZCopy.
 */
import { contestant as amEvents } from '../contestants/am-events.ts'
import type { Contestant } from '../contestants/contestant.ts'
import { contestant as netRelinked } from '../contestants/net-relinked.ts'
import { decodeLatencies, type Half, withPair } from '../half.ts'
import { CREDITS_VARIABLE, NO_DELAY_VARIABLE } from '../half-settings.ts'
import { measureInRounds } from '../rounds.ts'
import { timesOf } from '../sizes.ts'
import type { Sample, Suite, SuiteContext } from '../suite.ts'

const KIBI = 1024
const MEBI = KIBI * KIBI
const BASELINE = 'as-shipped'

interface Workload {
  readonly kind: 'pingPong' | 'stream'
  readonly size: number
}

interface Variant {
  readonly name: string
  readonly technique: string
  readonly contestant: Contestant
  readonly settings: NodeJS.ProcessEnv
  readonly workloads: readonly Workload[]
  /** Measured also where only the shape counts. */
  readonly isQuick: boolean
}

const pingPong = (...sizes: number[]): Workload[] => sizes.map(size => ({ kind: 'pingPong', size }))
const stream = (...sizes: number[]): Workload[] => sizes.map(size => ({ kind: 'stream', size }))

const SMALL = 64
const ZCOPY_SIZES = [32 * KIBI, 64 * KIBI, 128 * KIBI, 256 * KIBI, 512 * KIBI, MEBI, 2 * MEBI, 4 * MEBI]
const NET_WORKLOADS = [...pingPong(SMALL, 16 * KIBI), ...stream(SMALL, 4 * KIBI, ...ZCOPY_SIZES)]
const MESSAGE_WORKLOADS = [...pingPong(SMALL), ...stream(SMALL, 4 * KIBI)]

const ablate = (text: string): NodeJS.ProcessEnv => ({ FASTSOCKETS_ABLATE: text })
const zcopy = (threshold: string): NodeJS.ProcessEnv => ({ FASTSOCKETS_ZCOPY_THRESHOLD: threshold })

const NET_SWITCHES = [
  net('no-posting', 'receive posting', ablate('no-posting'), [
    ...pingPong(SMALL, 16 * KIBI),
    ...stream(4 * KIBI, 64 * KIBI),
  ]),
  net('no-delayed-acks', 'delayed acks', ablate('no-delayed-acks'), [
    ...pingPong(SMALL),
    ...stream(SMALL, 4 * KIBI, 64 * KIBI),
  ]),
  net('no-coalescing', 'coalescing', { [NO_DELAY_VARIABLE]: '1' }, stream(SMALL, 4 * KIBI)),
  net('zcopy-off', 'ZCopy', zcopy('off'), stream(...ZCOPY_SIZES)),
]

const SWEEPS = [
  ...[32, 128, 512].map(kibi =>
    net(`zcopy-from-${kibi}-KiB`, 'ZCopy', zcopy(String(kibi * KIBI)), stream(...ZCOPY_SIZES), kibi === 32),
  ),
  ...[0, 10, 25, 50, 100, 200].map(us =>
    net(
      `spin-${us}-us`,
      'spin',
      ablate(`spin-us=${us}`),
      [...pingPong(SMALL), ...stream(4 * KIBI)],
      us === 0,
    ),
  ),
  ...[64, 256, 1024, 4096, 16384].map(kibi =>
    net(
      `ring-${kibi}-KiB`,
      'ring size',
      ablate(`ring=${kibi * KIBI}`),
      [...pingPong(SMALL), ...stream(4 * KIBI, 64 * KIBI)],
      kibi === 64,
    ),
  ),
  ...[1, 2, 4, 8, 16, 32, 64].map(count =>
    messages(`credits-${count}`, 'credits', { [CREDITS_VARIABLE]: String(count) }, count === 1),
  ),
]

const VARIANTS: readonly Variant[] = [
  net(BASELINE, 'none', {}, NET_WORKLOADS),
  messages(BASELINE, 'none', {}, true),
  ...NET_SWITCHES,
  ...SWEEPS,
]

export const ablation: Suite = {
  name: 'ablation',
  what: 'what receive posting, ZCopy, delayed acks, credits, spinning, ring size and coalescing are worth',
  quickSeconds: 10,
  contestants: [...new Set(VARIANTS.map(({ name }) => name))],
  baseline: BASELINE,
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
    return await measureInRounds(context, 'ablation', trials, BASELINE)
  },
}

function net(
  name: string,
  technique: string,
  settings: NodeJS.ProcessEnv,
  workloads: readonly Workload[],
  isQuick = true,
): Variant {
  return {
    name,
    technique,
    contestant: netRelinked,
    settings,
    workloads,
    isQuick,
  }
}

function messages(name: string, technique: string, settings: NodeJS.ProcessEnv, isQuick: boolean): Variant {
  return { name, technique, contestant: amEvents, settings, workloads: MESSAGE_WORKLOADS, isQuick }
}

async function measure(variant: Variant, context: SuiteContext): Promise<Sample[]> {
  const { contestant, settings, workloads } = variant
  const chosen = context.isQuick ? [workloads[0] as Workload] : workloads
  return await withPair(
    contestant,
    async ({ client }) => {
      const samples: Sample[] = []
      for (const workload of chosen) samples.push(await sampleOf(workload, contestant.name, client, context))
      return samples
    },
    settings,
  )
}

async function sampleOf(
  { kind, size }: Workload,
  over: string,
  client: Half,
  context: SuiteContext,
): Promise<Sample> {
  const parameters = { over, size }
  const times = timesOf(context)
  if (kind === 'pingPong') {
    const latencies = decodeLatencies(await client.ask({ ask: kind, size, ...times }))
    const value = latencies.percentiles().p50
    return { parameters, metric: 'roundTrip', unit: 'us', better: 'lower', value, latencies }
  }
  const { bytes, ms } = await client.ask({ ask: kind, size, ...times })
  return { parameters, metric: 'rate', unit: 'B/s', better: 'higher', value: bytes / (ms / 1000) }
}
