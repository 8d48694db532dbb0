/** Bearer tokens, from a file: their owners, the names that they reach, and whether they may change those names. */
import { createHash, timingSafeEqual } from 'node:crypto'
import { Refusal } from '../problem.ts'
import type { Principal } from './principal.ts'
import { readYaml, SettingsError } from './settings.ts'
import { compile } from './validation.ts'

/** Tokens can be guessed over a network: 16 characters of base64 are 96 bits. */
const TOKEN_LENGTH_MIN = 16
const TOKENS_MAX = 1000
/** Most bytes of the file: a thousand tokens with all their prefixes. */
const TOKENS_SIZE_MAX = 16 * 1024 * 1024

const SCHEMA = {
  type: 'object',
  required: ['tokens'],
  additionalProperties: false,
  properties: {
    tokens: {
      type: 'array',
      maxItems: TOKENS_MAX,
      items: {
        type: 'object',
        required: ['name', 'prefixes', 'access'],
        oneOf: [{ required: ['token'] }, { required: ['sha256'] }],
        additionalProperties: false,
        properties: {
          name: { type: 'string', pattern: '^[a-zA-Z0-9._-]{1,64}$' },
          token: { type: 'string', minLength: TOKEN_LENGTH_MIN, maxLength: 512 },
          sha256: { type: 'string', pattern: '^[0-9a-f]{64}$' },
          prefixes: {
            type: 'array',
            minItems: 1,
            maxItems: 64,
            items: { type: 'string', pattern: '^[a-zA-Z0-9._/:%-]{0,200}$' },
          },
          access: { type: 'string', enum: ['read', 'write'] },
        },
      },
    },
  },
}

interface TokenEntry {
  readonly name: string
  readonly token?: string
  readonly sha256?: string
  readonly prefixes: readonly string[]
  readonly access: 'read' | 'write'
}

interface Token {
  readonly digest: Buffer
  readonly principal: Principal
}

const check = compile(SCHEMA)

export class Tokens {
  readonly #tokens: readonly Token[]

  /** Throws a `SettingsError`, which contains nothing of the file. */
  static async read(path: string): Promise<Tokens> {
    const content = await readYaml(path, { sizeMax: TOKENS_SIZE_MAX, isSecret: true })
    const mistake = check(content)
    if (mistake !== undefined) throw new SettingsError(`the token file: ${mistake.at} ${mistake.detail}`)
    return new Tokens((content as { tokens: TokenEntry[] }).tokens)
  }

  private constructor(entries: readonly TokenEntry[]) {
    if (new Set(entries.map(({ name }) => name)).size !== entries.length) {
      throw new SettingsError('the token file: two tokens have the same name')
    }
    this.#tokens = entries.map(entry => ({
      digest: entry.sha256 === undefined ? digest(entry.token ?? '') : Buffer.from(entry.sha256, 'hex'),
      principal: principalOf(entry),
    }))
  }

  get count(): number {
    return this.#tokens.length
  }

  /** Takes the same time for every token, valid or not, against timing attacks. */
  find(presented: string): Principal | undefined {
    const presentedDigest = digest(presented)
    let found: Principal | undefined
    for (const { digest, principal } of this.#tokens) {
      if (timingSafeEqual(digest, presentedDigest)) found = principal
    }
    return found
  }
}

function principalOf({ name, prefixes, access }: TokenEntry): Principal {
  return {
    owner: `token:${name}`,
    credentials: undefined,
    isAdmin: false,
    readOnlyReason:
      access === 'write' ? undefined : new Refusal('forbidden', 'The token may only ask, not change.'),
    readable: prefixes,
    writable: access === 'write' ? prefixes : [],
  }
}

function digest(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}
