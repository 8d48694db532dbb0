/**
 * The report of `fastsockets bench --json`: its types, and the JSON Schema by which a report from a file is validated.
 * A change that an old reader would misread raises `REPORT_VERSION`.
 */
export const REPORT_VERSION = 1

export interface Report {
  readonly version: typeof REPORT_VERSION
  /** The command line, to repeat the run. */
  readonly command: string
  /** ISO 8601, UTC. */
  readonly startedAt: string
  readonly seconds: number
  readonly machine: Machine
  readonly options: ReportOptions
  readonly results: readonly Result[]
  readonly skipped: readonly Skipped[]
}

export interface ReportOptions {
  readonly rounds: number
  readonly isQuick: boolean
  readonly seed: number
}

export interface Machine {
  readonly cores: number
  readonly model: string
  readonly memoryBytes: number
  readonly node: string
  readonly kernel: string
  /** The load averages of one minute, before the first suite and after the last. */
  readonly loadBefore: number
  readonly loadAfter: number
  /**
   * How many cores were at work just before; absent where the kernel does not say, and in reports of earlier
   * releases.
   */
  readonly busyCoresBefore?: number
  /** Whether little else ran when it began. Figures of a machine that is not quiet are a hint. */
  readonly isQuiet: boolean
}

export type Parameters = Readonly<Record<string, string | number>>

/**
 * What one contestant did in one suite, with one set of parameters. These four and `metric` name it: no two are the
 * same.
 */
export interface Result {
  readonly suite: string
  readonly contestant: string
  readonly parameters: Parameters
  /** A noun in camel case without the unit: `roundTrip`, `rate`, `cpu`. */
  readonly metric: string
  /** `us`, `B/s`, `1/s`, `s/GB`, `B`, … */
  readonly unit: string
  readonly better: 'lower' | 'higher'
  /**
   * One value a round, in the order of the rounds. For latencies it is the round's median; in `plain-peers` its
   * mean.
   */
  readonly rounds: readonly number[]
  /** The median of `rounds`. */
  readonly median: number
  /** Of the samples of all rounds together. */
  readonly latencies?: Percentiles
  readonly ratio?: Ratio
}

/** In the unit of the result. */
export interface Percentiles {
  readonly count: number
  readonly p50: number
  readonly p90: number
  readonly p99: number
  readonly p999: number
  readonly max: number
}

/** This contestant's value divided by that of another, in the same suite with the same parameters and metric. */
export interface Ratio {
  /** The other contestant. */
  readonly to: string
  /** Of the ratios of the rounds: both ran in each round, one soon after the other. */
  readonly median: number
  /** The median lies between these; how sure that is, with so many rounds, `interval.ts` says. */
  readonly low: number
  readonly high: number
}

/** What was not measured, and why. Nothing is left out in silence. */
/** What the reason begins with if a contestant broke down. */
export const FAILED = 'it failed: '

export interface Skipped {
  readonly suite: string
  readonly contestant: string
  readonly reason: string
}

const NAME = { type: 'string', minLength: 1, maxLength: 100 } as const
/** Of which names of files are made. */
const WORD = { type: 'string', pattern: '^[A-Za-z][A-Za-z0-9-]{0,99}$' } as const
const TEXT = { type: 'string', maxLength: 4096 } as const
const POSITIVE = { type: 'number', exclusiveMinimum: 0 } as const
const NOT_NEGATIVE = { type: 'number', minimum: 0 } as const

const PERCENTILES_SCHEMA = {
  type: 'object',
  additionalProperties: false,
  required: ['count', 'p50', 'p90', 'p99', 'p999', 'max'],
  properties: {
    count: { type: 'integer', minimum: 1 },
    p50: POSITIVE,
    p90: POSITIVE,
    p99: POSITIVE,
    p999: POSITIVE,
    max: POSITIVE,
  },
} as const

const RATIO_SCHEMA = {
  type: 'object',
  additionalProperties: false,
  required: ['to', 'median', 'low', 'high'],
  properties: { to: NAME, median: POSITIVE, low: POSITIVE, high: POSITIVE },
} as const

const RESULT_SCHEMA = {
  type: 'object',
  additionalProperties: false,
  required: ['suite', 'contestant', 'parameters', 'metric', 'unit', 'better', 'rounds', 'median'],
  properties: {
    suite: WORD,
    contestant: NAME,
    parameters: { type: 'object', maxProperties: 20, additionalProperties: { type: ['string', 'number'] } },
    metric: WORD,
    unit: NAME,
    better: { enum: ['lower', 'higher'] },
    rounds: { type: 'array', minItems: 1, maxItems: 1000, items: POSITIVE },
    median: POSITIVE,
    latencies: PERCENTILES_SCHEMA,
    ratio: RATIO_SCHEMA,
  },
} as const

const MACHINE_SCHEMA = {
  type: 'object',
  additionalProperties: false,
  required: ['cores', 'model', 'memoryBytes', 'node', 'kernel', 'loadBefore', 'loadAfter', 'isQuiet'],
  properties: {
    cores: { type: 'integer', minimum: 1 },
    model: TEXT,
    memoryBytes: POSITIVE,
    node: TEXT,
    kernel: TEXT,
    loadBefore: NOT_NEGATIVE,
    loadAfter: NOT_NEGATIVE,
    busyCoresBefore: NOT_NEGATIVE,
    isQuiet: { type: 'boolean' },
  },
} as const

export const REPORT_SCHEMA = {
  type: 'object',
  additionalProperties: false,
  required: ['version', 'command', 'startedAt', 'seconds', 'machine', 'options', 'results', 'skipped'],
  properties: {
    version: { const: REPORT_VERSION },
    command: TEXT,
    startedAt: { type: 'string', pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(\\.\\d+)?Z$' },
    seconds: POSITIVE,
    machine: MACHINE_SCHEMA,
    options: {
      type: 'object',
      additionalProperties: false,
      required: ['rounds', 'isQuick', 'seed'],
      properties: {
        rounds: { type: 'integer', minimum: 1, maximum: 1000 },
        isQuick: { type: 'boolean' },
        seed: { type: 'integer', minimum: 0, maximum: 0xffff_ffff },
      },
    },
    results: { type: 'array', maxItems: 100_000, items: RESULT_SCHEMA },
    skipped: {
      type: 'array',
      maxItems: 100_000,
      items: {
        type: 'object',
        additionalProperties: false,
        required: ['suite', 'contestant', 'reason'],
        properties: { suite: NAME, contestant: NAME, reason: TEXT },
      },
    },
  },
} as const
