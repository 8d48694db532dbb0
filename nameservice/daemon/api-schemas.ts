/**
 * JSON Schemas of requests and answers: the daemon checks requests by them, and publishes them in its OpenAPI
 * document.
 */
import { NAME_LENGTH_MAX } from '../name.ts'
import { PROBLEM_URN, PROBLEMS } from '../problem.ts'

const DRIVERS_MAX = 16
/** Base64 of 3 KiB. */
const ADDRESS_LENGTH_MAX = 4096
const LABELS_MAX = 64

const uint = (description: string, maximum: number) => ({ type: 'integer', minimum: 0, maximum, description })
const object = (required: readonly string[], properties: object, description?: string) => ({
  type: 'object',
  additionalProperties: false,
  required,
  properties,
  ...(description === undefined ? {} : { description }),
})
const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` })

export const LEASE_ID = { type: 'string', pattern: '^[0-9a-f]{16}$', description: 'a lease' }
const REVISION = uint('number of a change; later changes have higher ones', Number.MAX_SAFE_INTEGER)
const OWNER = { type: 'string', description: 'whose it is: `uid:1000` or `token:NAME`' }
export const NAME = {
  type: 'string',
  minLength: 1,
  maxLength: NAME_LENGTH_MAX,
  pattern: '^([a-z0-9._/-]+|inet:tcp:[0-9a-fA-F.:]+(%[a-zA-Z0-9._-]+)?:[1-9][0-9]{0,4})$',
  description: "an endpoint's name, `[a-z0-9._/-]{1,200}`, or a listener's, `inet:tcp:ADDRESS:PORT`",
}
export const PREFIX = {
  type: 'string',
  maxLength: NAME_LENGTH_MAX,
  pattern: '^[a-zA-Z0-9._/:%-]*$',
  description: 'what names begin with',
}
export const CURSOR = {
  type: 'string',
  pattern: '^[0-9a-f]{12}-[0-9]{1,15}(\\.[0-9]{1,9})?$',
  description: 'a point in the history of changes, as an answer or an event gave it',
}

/** Headers of answers, and of refusals, about names. */
export const FRESHNESS_HEADERS = {
  'fastsockets-cursor': {
    description:
      'Where the history stands: a watch that begins here misses nothing that came after this answer.',
    schema: CURSOR,
  },
  'fastsockets-stale': {
    description: 'The store cannot be reached: this is what was known last.',
    schema: { type: 'string', enum: ['true'] },
  },
} as const satisfies Record<string, object>

const RECORD_PROPERTIES = {
  endpoint: {
    type: 'string',
    pattern: '^[!-~]{1,512}$',
    description: "the endpoint's own, global name; printable, no spaces",
  },
  host: {
    type: 'string',
    pattern: '^[!-~]{0,128}$',
    description: 'identity of its host; endpoints with the same one can share memory',
  },
  pid: uint('process id; over the unix socket that of the caller, if left out', 2 ** 32 - 1),
  uid: uint('user id; over the unix socket that of the caller', 2 ** 32 - 1),
  drivers: {
    type: 'array',
    maxItems: DRIVERS_MAX,
    items: object(['name', 'address'], {
      name: { type: 'string', pattern: '^[a-z0-9_-]{1,32}$' },
      address: {
        type: 'string',
        maxLength: ADDRESS_LENGTH_MAX,
        pattern: '^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$',
        description: "the driver's address blob, base64",
      },
    }),
    description: 'the drivers by which it can be reached, best first',
  },
  tag: { type: 'string', pattern: '^[0-9a-f]{16}$', description: '64 bits, hexadecimal' },
  version: uint('version of the protocol that it speaks', 65_535),
  port: {
    type: 'integer',
    minimum: 1,
    maximum: 65_535,
    description: 'inet names: where the bootstrap of the listener really listens',
  },
  labels: {
    type: 'object',
    maxProperties: LABELS_MAX,
    propertyNames: { pattern: '^[a-zA-Z0-9][a-zA-Z0-9._/-]{0,62}$' },
    additionalProperties: { type: 'string', maxLength: 256 },
    description: 'whatever else the program wants to say',
  },
}

const KIND = { type: 'string', enum: ['endpoint', 'inet'], description: 'follows from the name' }
const RECORD_REQUIRED = ['kind', 'endpoint', 'host', 'pid', 'uid', 'drivers', 'tag', 'version', 'labels']
const ENTRY_REQUIRED = ['name', 'revision', 'lease', 'owner', 'record']
const ENTRY_PROPERTIES = {
  name: NAME,
  revision: REVISION,
  lease: LEASE_ID,
  owner: OWNER,
  record: ref('Record'),
}

export const NEW_LEASE = object([], {
  ttlMs: {
    type: 'integer',
    minimum: 1,
    maximum: 2 ** 32,
    description: 'how long it lasts without a keep-alive',
  },
})

export const REGISTRATION = object(['lease', 'record'], {
  lease: LEASE_ID,
  record: object(['endpoint'], { kind: KIND, ...RECORD_PROPERTIES }),
  takeover: {
    type: 'boolean',
    description: 'take the name from its holder, if the owner key is the same',
  },
  ownerKey: {
    type: 'string',
    minLength: 1,
    maxLength: 256,
    description: 'a secret by which a program that was started anew proves that the name is its own',
  },
})

export const WATCH = object([], {
  prefixes: { type: 'array', maxItems: 256, items: PREFIX },
  names: { type: 'array', maxItems: 256, items: NAME },
  after: CURSOR,
})

/** Named schemas of the OpenAPI document. */
export const COMPONENT_SCHEMAS = {
  Record: object(RECORD_REQUIRED, { kind: KIND, ...RECORD_PROPERTIES }, 'what a name stands for'),
  Entry: object(ENTRY_REQUIRED, ENTRY_PROPERTIES, 'a name that is registered'),
  Entries: object(['entries', 'cursor'], {
    entries: { type: 'array', items: ref('Entry') },
    cursor: { ...CURSOR, description: 'a watch that begins here misses nothing' },
    next: { ...NAME, description: 'there is more after this name; ask again with `after`' },
  }),
  NewLease: NEW_LEASE,
  Lease: object(['id', 'owner', 'ttlMs', 'names'], {
    id: LEASE_ID,
    owner: OWNER,
    ttlMs: { type: 'integer', minimum: 1 },
    names: uint('names registered under it', Number.MAX_SAFE_INTEGER),
    expiresInMs: uint('time left; absent if the daemon does not keep it', Number.MAX_SAFE_INTEGER),
  }),
  Leases: object(['leases'], {
    leases: { type: 'array', items: ref('Lease') },
    next: { ...LEASE_ID, description: 'there is more after this lease; ask again with `after`' },
  }),
  PageAddress: object(['address'], { address: { type: 'string' } }),
  Registration: REGISTRATION,
  Removal: object(['name', 'revision'], { name: NAME, revision: REVISION }),
  Watch: WATCH,
  Health: object(['status'], {
    status: { type: 'string', enum: ['ok', 'unavailable'] },
    reasons: { type: 'array', items: { type: 'string' } },
  }),
  Problem: {
    type: 'object',
    required: ['type', 'title', 'status', 'detail'],
    properties: {
      type: { type: 'string', enum: Object.keys(PROBLEMS).map(code => PROBLEM_URN + code) },
      title: { type: 'string' },
      status: { type: 'integer' },
      detail: { type: 'string' },
      errors: {
        type: 'array',
        items: object(['at', 'detail'], { at: { type: 'string' }, detail: { type: 'string' } }),
      },
      retryAfterMs: uint('when it makes sense to try again', Number.MAX_SAFE_INTEGER),
      oldest: { ...CURSOR, description: 'the oldest point from which a watch may begin' },
    },
    description: 'RFC 9457',
  },
}
