/**
 * The only definition of the daemon's settings. The form of the configuration file, the environment's variables,
 * the command line's flags, the defaults and the help come from here. `a.bC` is `FASTSOCKETS_NAMED_A_B_C` and
 * `--a-b-c`.
 */
import { HISTORY_DEFAULT } from '../store/change-log.ts'

const MIB = 1024 * 1024
/**
 * Most bytes of a file of certificates, a key or a password: all authorities that a system trusts take a quarter
 * of it.
 */
export const PEM_SIZE_MAX = MIB
const DAY_MS = 86_400_000

const count = (description: string, value: number, minimum = 1, maximum = 10_000_000) =>
  ({ type: 'integer', description, default: value, minimum, maximum }) as const
const text = (description: string, value = '') =>
  ({ type: 'string', description, default: value, maxLength: 1000 }) as const
const choice = <T extends string>(description: string, value: T, ...others: T[]) =>
  ({ type: 'string', description, default: value, enum: [value, ...others] }) as const
const list = (description: string, items: object) =>
  ({ type: 'array', description, default: [] as never[], maxItems: 100, items }) as const
const group = <T extends object>(properties: T) =>
  ({ type: 'object', additionalProperties: false, properties }) as const

export const SETTINGS_SCHEMA = group({
  socket: group({
    path: text('unix socket; "none" for none. A socket that systemd passes is used instead'),
    mode: { ...text('permissions of the unix socket, octal', '0666'), pattern: '^0?[0-7]{3}$' },
  }),
  tcp: group({
    listen: text('ADDRESS:PORT to listen on, too; empty for none'),
    certificate: text('file with the TLS certificate and its chain, PEM'),
    key: text('file with the private key, PEM'),
    tokens: text('file with the tokens'),
  }),
  store: group({
    kind: choice('where names are kept', 'embedded', 'memory', 'etcd'),
    path: text('folder of the embedded store'),
    onDamage: choice('what to do with a damaged embedded store', 'quarantine', 'refuse'),
    history: count('changes that are kept for watchers', HISTORY_DEFAULT, 10, 1_000_000),
  }),
  etcd: group({
    endpoints: list('URLs of etcd members', { type: 'string', pattern: '^https?://', maxLength: 1000 }),
    prefix: { ...text('what every key in etcd begins with', '/fastsockets/named'), pattern: '^/[!-~]*$' },
    ca: text('file with the certificates to trust, PEM'),
    certificate: text('file with the client certificate, PEM'),
    key: text('file with its private key, PEM'),
    user: text('user, if etcd asks for one'),
    passwordFile: text('file with the password'),
  }),
  admins: list('user ids that may change all names, as root may', { type: 'integer', minimum: 0 }),
  limits: group({
    bodyBytes: count('bytes of a request body', 64 * 1024, 1024, 16 * MIB),
    headerBytes: count('bytes of a request line with its headers', 16 * 1024, 1024, MIB),
    requestMs: count(
      'time for the body of a request to arrive; its head has as long, and 5000 at most',
      10_000,
      100,
      600_000,
    ),
    idleMs: count(
      'time that a connection may be silent between requests, or leave an answer unread',
      60_000,
      100,
      3_600_000,
    ),
    requestsPerSecond: count('requests a second from one owner, and how many it may save up', 200_000),
    connections: count('open connections; the last sixteenth is for administrators', 16_384),
    connectionsPerOwner: count(
      'connections of one owner: a user, or over TCP an address; fewer if there are too few descriptors',
      4096,
    ),
    leaseTtlMinMs: count('shortest TTL of a lease', 1000, 100, DAY_MS),
    leaseTtlMaxMs: count('longest TTL of a lease', DAY_MS, 1000, 30 * DAY_MS),
    leases: count('leases; the last sixteenth is for administrators', 65_536),
    leasesPerOwner: count('leases of one owner', 16_384),
    names: count('names; the last sixteenth is for administrators', 131_072),
    namesPerOwner: count('names of one owner', 32_768),
    recordsBytes: count(
      'bytes of all records together; the last sixteenth is for administrators',
      64 * MIB,
      1024,
      4096 * MIB,
    ),
    recordsBytesPerOwner: count('bytes of the records of one owner', 16 * MIB, 1024, 4096 * MIB),
    namesPerLease: count('names under one lease; half of store.history at most', 5000),
    watchers: count('watchers; the last sixteenth is for administrators', 8192),
    watchersPerOwner: count('watchers of one owner', 2048),
  }),
  log: group({
    level: choice('least important messages that are logged', 'info', 'debug', 'warn', 'error', 'silent'),
  }),
})

type Value<S> = S extends { type: 'integer' }
  ? number
  : S extends { type: 'array' }
    ? readonly (number | string)[]
    : S extends { enum: readonly (infer T)[] }
      ? T
      : S extends { type: 'string' }
        ? string
        : S extends { properties: infer P }
          ? { readonly [K in keyof P]: Value<P[K]> }
          : never

export type Settings = Value<typeof SETTINGS_SCHEMA>
export type Limits = Settings['limits']

export interface Leaf {
  readonly path: readonly string[]
  readonly type: 'integer' | 'string' | 'array'
  readonly description: string
  readonly value: unknown
  /** The allowed values, if the setting is a choice. */
  readonly choices: readonly string[] | undefined
}

interface SchemaNode {
  readonly type: string
  readonly properties?: Readonly<Record<string, SchemaNode>>
  readonly description?: string
  readonly default?: unknown
  readonly enum?: readonly string[]
}

/** All settings, in order. */
export const LEAVES: readonly Leaf[] = leavesOf(SETTINGS_SCHEMA, [])

function leavesOf(node: SchemaNode, path: readonly string[]): Leaf[] {
  if (node.properties !== undefined) {
    return Object.entries(node.properties).flatMap(([key, child]) => leavesOf(child, [...path, key]))
  }
  const { type, description = '', default: value, enum: choices } = node
  return [{ path, type: type as Leaf['type'], description, value, choices }]
}

const words = (path: readonly string[]): string[] =>
  path.flatMap(key => key.replace(/[A-Z]/g, capital => ` ${capital.toLowerCase()}`).split(' '))

export function flagOf({ path }: Leaf): string {
  return `--${words(path).join('-')}`
}

export function variableOf({ path }: Leaf): string {
  return `FASTSOCKETS_NAMED_${words(path).join('_').toUpperCase()}`
}
