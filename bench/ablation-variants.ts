/**
 * The steps of the suite `ablation`: the technique and the setting of each. A report contains only the name of a step;
 * tables and pictures look the rest up here.
 */
import { CREDITS_VARIABLE, NO_DELAY_VARIABLE } from './half-settings.ts'
import { sizeText } from './quantity.ts'
import type { Workload } from './warm-up.ts'

/** The package as it ships: the base of all comparisons. */
export const AS_SHIPPED = 'as-shipped'

const KIBI = 1024
const MEBI = KIBI * KIBI

/** The contestant whose program it is. */
export type Carrier = 'net-relinked' | 'am-events'

export interface Variant {
  readonly name: string
  /** As in README.md. */
  readonly technique: string
  /** What the technique is set to: `off`, or a number with its unit. */
  readonly setting: string
  readonly over: Carrier
  readonly environment: NodeJS.ProcessEnv
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

const NET = { over: 'net-relinked', isQuick: true } as const
const MESSAGES = { over: 'am-events', workloads: MESSAGE_WORKLOADS } as const

const SWITCHES: readonly Variant[] = [
  {
    ...NET,
    name: 'no-posting',
    technique: 'receive posting',
    setting: 'off',
    environment: ablate('no-posting'),
    workloads: [...pingPong(SMALL, 16 * KIBI), ...stream(4 * KIBI, 64 * KIBI)],
  },
  {
    ...NET,
    name: 'no-delayed-acks',
    technique: 'delayed acks',
    setting: 'off',
    environment: ablate('no-delayed-acks'),
    workloads: [...pingPong(SMALL), ...stream(SMALL, 4 * KIBI, 64 * KIBI)],
  },
  {
    ...NET,
    name: 'no-coalescing',
    technique: 'coalescing',
    setting: 'off',
    environment: { [NO_DELAY_VARIABLE]: '1' },
    workloads: stream(SMALL, 4 * KIBI),
  },
  {
    ...NET,
    name: 'zcopy-off',
    technique: 'ZCopy',
    setting: 'off',
    environment: zcopy('off'),
    workloads: stream(...ZCOPY_SIZES),
  },
]

const SWEEPS: readonly Variant[] = [
  ...[32, 128, 512].map(kibi => ({
    ...NET,
    name: `zcopy-from-${kibi}-KiB`,
    technique: 'ZCopy',
    setting: `from ${kibi} KiB`,
    environment: zcopy(String(kibi * KIBI)),
    workloads: stream(...ZCOPY_SIZES),
    isQuick: kibi === 32,
  })),
  ...[0, 10, 25, 50, 100, 200].map(us => ({
    ...NET,
    name: `spin-${us}-us`,
    technique: 'spinning',
    setting: `${us} us`,
    environment: ablate(`spin-us=${us}`),
    workloads: [...pingPong(SMALL), ...stream(4 * KIBI)],
    isQuick: us === 0,
  })),
  ...[64, 256, 1024, 4096, 16384].map(kibi => ({
    ...NET,
    name: `ring-${kibi}-KiB`,
    technique: 'ring size',
    setting: sizeText(kibi * KIBI),
    environment: ablate(`ring=${kibi * KIBI}`),
    workloads: [...pingPong(SMALL), ...stream(4 * KIBI, 64 * KIBI)],
    isQuick: kibi === 64,
  })),
  ...[1, 2, 4, 8, 16, 32, 64].map(count => ({
    ...MESSAGES,
    name: `credits-${count}`,
    technique: 'credits',
    setting: String(count),
    environment: { [CREDITS_VARIABLE]: String(count) },
    isQuick: count === 1,
  })),
]

const SHIPPED = { name: AS_SHIPPED, technique: AS_SHIPPED, environment: {}, isQuick: true } as const

/** In the order in which they are measured and shown. */
export const VARIANTS: readonly Variant[] = [
  { ...SHIPPED, setting: 'sockets', over: 'net-relinked', workloads: NET_WORKLOADS },
  { ...SHIPPED, ...MESSAGES, setting: 'active messages' },
  ...SWITCHES,
  ...SWEEPS,
]
