/** Titles of pictures and of parts of the page, for readers who do not know the bench. */
import type { Result } from '../result.ts'

interface SuiteTitle {
  readonly heading: string
  /** By metric. */
  readonly metrics: Readonly<Record<string, string>>
}

const SUITES: Readonly<Record<string, SuiteTitle>> = {
  pingpong: { heading: 'Round trips', metrics: { roundTrip: 'Time for a round trip, by message size' } },
  stream: { heading: 'Streams', metrics: { rate: 'Bytes per second one way, by size of the writes' } },
  connect: {
    heading: 'New connections',
    metrics: {
      connection: 'Time until a new connection is open',
      rate: 'New connections per second, one after the other',
    },
  },
  fanin: {
    heading: 'Many client processes',
    metrics: {
      rate: '64-byte round trips per second, by number of client processes',
      roundTrip: 'Time for a 64-byte round trip, by number of client processes',
    },
  },
  threads: {
    heading: 'Many threads',
    metrics: {
      rate: '64-byte round trips per second, by number of client threads',
      roundTrip: 'Time for a 64-byte round trip, by number of client threads',
    },
  },
  many: {
    heading: 'Many sockets',
    metrics: {
      rate: '64-byte round trips per second, by number of sockets',
      roundTrip: 'Time for a 64-byte round trip, by number of sockets',
    },
  },
  idle: { heading: 'Idle processes', metrics: { cpu: 'CPU time per second of two idle processes' } },
  oversubscribed: {
    heading: 'More busy processes than cores',
    metrics: {
      roundTrips: '64-byte round trips per second of all pairs together',
      rate: 'Bytes per second of all pairs together, writes of 64 KiB',
    },
  },
  'plain-peers': {
    heading: 'Only one side is relinked',
    metrics: {
      roundTrip: 'One side relinked: time for a 64-byte round trip',
      rate: 'One side relinked: bytes per second one way, writes of 64 KiB',
      connection: 'One side relinked: time for a whole connection',
    },
  },
  short: {
    heading: 'Programs that live up to a second',
    metrics: { time: 'Time from start to end, geometric mean of the programs' },
  },
  warmup: {
    heading: 'Cold programs',
    metrics: {
      connections: 'A pair of new processes: connections in each second',
      tripsOfClients: '8 new clients of one server: 64-byte round trips in each second',
      tripsOfPairs: '8 pairs of new processes: 64-byte round trips in each second',
    },
  },
  cpu: {
    heading: 'CPU time',
    metrics: {
      cpuPerMillionMessages: 'CPU time of both processes for a million messages of 64 bytes',
      cpuPerGigabyte: 'CPU time of both processes for a gigabyte',
    },
  },
  memory: {
    heading: 'Memory',
    metrics: {
      bytesPerPeer: 'Memory at both ends for a peer',
      bytesPerConnection: 'Memory at both ends for a connection',
    },
  },
  apps: { heading: 'Packages from npm, unmodified', metrics: {} },
  ablation: { heading: 'What each technique is worth', metrics: {} },
  micro: { heading: 'Single operations', metrics: { time: 'Time of one operation' } },
}

/** With the suite's own name, by which `fastsockets bench` runs it. */
export function headingOf(suite: string): string {
  const heading = Object.hasOwn(SUITES, suite) ? SUITES[suite]?.heading : undefined
  return heading === undefined ? suite : `${heading} (\`${suite}\`)`
}

export function titleOf({ suite, metric, better }: Pick<Result, 'suite' | 'metric' | 'better'>): string {
  const metrics = Object.hasOwn(SUITES, suite) ? (SUITES[suite]?.metrics ?? {}) : {}
  const title = Object.hasOwn(metrics, metric) ? metrics[metric] : undefined
  return withDirection(title ?? `${suite}: ${axisTitle(metric)}`, better)
}

export function withDirection(title: string, better: Result['better']): string {
  return `${title} (${better} is better)`
}

/** `bytesPerPeer` is for programs. */
export function axisTitle(name: string): string {
  if (name === 'size') return 'message size'
  if (name === 'clients') return 'client processes'
  return name.replace(/^cpu/, 'CPU time').replace(/[A-Z]/g, letter => ` ${letter.toLowerCase()}`)
}
