/** The kinds of names, and their forms. */
import { parseInetName } from './inet-name.ts'

export const NAME_LENGTH_MAX = 200

/** `inet`: the address and port of a TCP listener. `endpoint`: a name that a program chose. */
export type NameKind = 'endpoint' | 'inet'

const ENDPOINT_NAME = /^[a-z0-9._/-]{1,200}$/
/** Form of a prefix of endpoint or listener names; the empty prefix matches every name. */
const PREFIX = /^[a-zA-Z0-9._/:%-]{0,200}$/

/** The kind of a name, or undefined for an invalid name. */
export function kindOf(name: string): NameKind | undefined {
  if (ENDPOINT_NAME.test(name)) return 'endpoint'
  return name.length <= NAME_LENGTH_MAX && parseInetName(name) !== undefined ? 'inet' : undefined
}

export function isPrefix(prefix: string): boolean {
  return PREFIX.test(prefix)
}
