/** The content of a policy file, as JSON Schema. Unknown keys are errors. */
import { PATTERN_LENGTH_MAX } from './glob.ts'

const USE = { enum: ['fast', 'tcp', 'require'] } as const

/** All drivers that may carry sockets: a policy can name them. */
export const DRIVERS = ['shm', 'loopback', 'verbs', 'ethernet'] as const
/** Those that are used only where they are named: no packet filter sees raw frames. */
export const NAMED_DRIVERS: readonly string[] = ['ethernet']

export const PORT_PATTERN = '^[0-9]{1,5}(-[0-9]{1,5})?$'
export const PORT_DEMAND = 'must be within 1..65535, or a range such as 8000-8099'
export const RULES_MAX = 1000
export const USERS_MAX = 1000
export const USER_ID_MAX = 0xffff_ffff
export const USER_DEMAND = 'must be a user id or a user name'
/** As useradd(8) allows it; no number. */
export const USER_NAME_PATTERN = '^[A-Za-z_][A-Za-z0-9_.-]{0,31}\\$?$'
const PATH_LENGTH_MAX = 4096

export const POLICY_SCHEMA = {
  type: 'object',
  additionalProperties: false,
  properties: {
    default: USE,
    users: {
      type: 'array',
      maxItems: USERS_MAX,
      items: {
        anyOf: [
          { type: 'integer', minimum: 0, maximum: USER_ID_MAX },
          { type: 'string', pattern: USER_NAME_PATTERN },
        ],
      },
    },
    drivers: { type: 'array', uniqueItems: true, items: { enum: DRIVERS } },
    zcopy: { type: 'boolean' },
    start: { enum: ['tcp', 'fast'] },
    datagrams: { enum: ['fast', 'kernel'] },
    keyFile: { type: 'string', pattern: '^/', maxLength: PATH_LENGTH_MAX },
    rendezvous: { type: 'string', pattern: '^(/|off$)', maxLength: PATH_LENGTH_MAX },
    rules: {
      type: 'array',
      maxItems: RULES_MAX,
      items: {
        type: 'object',
        additionalProperties: false,
        required: ['use'],
        properties: {
          use: USE,
          program: { type: 'string', minLength: 1, maxLength: PATTERN_LENGTH_MAX },
          path: { type: 'string', minLength: 1, maxLength: PATTERN_LENGTH_MAX },
          role: { enum: ['client', 'server'] },
          address: { type: 'string', minLength: 2, maxLength: 64 },
          port: {
            anyOf: [
              { type: 'integer', minimum: 1, maximum: 0xffff },
              { type: 'string', pattern: PORT_PATTERN },
            ],
          },
        },
      },
    },
  },
} as const

export type Use = 'fast' | 'tcp' | 'require'
/** Whether a connection uses TCP until the fast way pays, or waits for the fast way. */
export type Start = 'tcp' | 'fast'
/** Whether datagrams of `node:dgram` may go past the kernel. */
export type Datagrams = 'fast' | 'kernel'
export type Role = 'client' | 'server'

/** A file that has passed the schema. */
export interface PolicyDocument {
  readonly default?: Use
  readonly users?: readonly (number | string)[]
  readonly drivers?: readonly string[]
  readonly zcopy?: boolean
  readonly start?: Start
  readonly datagrams?: Datagrams
  readonly keyFile?: string
  readonly rendezvous?: string
  readonly rules?: readonly RuleDocument[]
}

export interface RuleDocument {
  readonly use: Use
  readonly program?: string
  readonly path?: string
  readonly role?: Role
  readonly address?: string
  readonly port?: number | string
}
