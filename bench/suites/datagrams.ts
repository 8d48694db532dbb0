/** Datagrams of `node:dgram`, plain and relinked; message sockets, and the same round trip over raw active messages. */
import {
  activeMessageUs,
  datagramUs,
  type Mode,
  messageRate,
  messageUs,
  receivedRate,
  STREAMED_SIZE,
} from '../datagram-pairs.ts'
import { measureInRounds } from '../rounds.ts'
import { LARGE, SMALL } from '../sizes.ts'
import type { Sample, Suite, SuiteContext } from '../suite.ts'

const WORD = 4
const MEBI = 1024 * 1024
const BASELINE = 'dgram'

type Measure = (ms: number, isQuick: boolean) => Promise<readonly Sample[]>

const MEASURES: Readonly<Record<string, Measure>> = {
  [BASELINE]: (ms, isQuick) => measureDatagrams('plain', ms, isQuick),
  'dgram-relinked': (ms, isQuick) => measureDatagrams('relinked', ms, isQuick),
  messages: async (ms, isQuick) => {
    const samples = [roundTrip(WORD, await messageUs(WORD, ms))]
    for (const size of isQuick ? [] : [LARGE, MEBI]) {
      const value = await messageRate(size, ms)
      samples.push({ parameters: { size }, metric: 'rate', unit: 'B/s', better: 'higher', value })
    }
    return samples
  },
  'am-polling': async ms => [roundTrip(WORD, await activeMessageUs(WORD, ms))],
}

export const datagrams: Suite = {
  name: 'datagrams',
  what: 'datagrams of node:dgram; message sockets beside raw active messages',
  quickSeconds: 2,
  contestants: Object.keys(MEASURES),
  baseline: BASELINE,
  run: async (context: SuiteContext) => {
    const ms = context.isQuick ? 100 : 1000
    const trials = Object.entries(MEASURES)
      .filter(([contestant]) => context.wants(contestant))
      .map(([contestant, measure]) => ({ contestant, measure: () => measure(ms, context.isQuick) }))
    return await measureInRounds(context, 'datagrams', trials, BASELINE)
  },
}

async function measureDatagrams(mode: Mode, ms: number, isQuick: boolean): Promise<readonly Sample[]> {
  const samples = [roundTrip(SMALL, await datagramUs([mode, mode], SMALL, ms))]
  if (isQuick) return samples
  const value = await receivedRate(mode, ms)
  return [
    ...samples,
    { parameters: { size: STREAMED_SIZE }, metric: 'received', unit: '1/s', better: 'higher', value },
  ]
}

function roundTrip(size: number, value: number): Sample {
  return { parameters: { size }, metric: 'roundTrip', unit: 'us', better: 'lower', value }
}
