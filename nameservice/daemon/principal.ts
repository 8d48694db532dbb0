/** The caller on whose behalf a request is made, and the caller's rights. */
import { isOverflowUser } from '../../nic/posix/own-user.ts'
import { Refusal } from '../problem.ts'
import type { PeerCredentials } from './system/posix.ts'

export interface Principal {
  /** Owner of the leases that are granted to the caller, and of the names under them: `uid:1000`, `token:NAME`. */
  readonly owner: string
  /** Credentials of callers over the unix socket. */
  readonly credentials: PeerCredentials | undefined
  /** May also change what other owners have. */
  readonly isAdmin: boolean
  /** Reason for which the caller may change nothing, or undefined. */
  readonly readOnlyReason: Refusal | undefined
  /** Prefixes of the names that the caller may look up, and of those that it may change. */
  readonly readable: readonly string[]
  readonly writable: readonly string[]
}

const EVERYTHING = ['']
const ROOT = 0

export function unixPrincipal(
  credentials: PeerCredentials | undefined,
  admins: ReadonlySet<number>,
  reason: string | undefined,
): Principal {
  const uid = credentials?.uid
  const isKnown = uid !== undefined && !isOverflowUser(uid)
  const why =
    reason ??
    (uid === undefined
      ? 'the socket has no peer'
      : `${uid} stands for all whom the user namespace does not map`)
  return {
    owner: uid === undefined ? 'unknown' : `uid:${uid}`,
    credentials,
    isAdmin: isKnown && (uid === ROOT || admins.has(uid)),
    readOnlyReason: !isKnown
      ? new Refusal('no-credentials', `The caller's user cannot be known, so nothing may be changed: ${why}.`)
      : undefined,
    readable: EVERYTHING,
    writable: EVERYTHING,
  }
}

/** An unidentified caller on this host: over TCP, from a daemon without tokens. */
export const ANONYMOUS: Principal = {
  owner: 'anonymous',
  credentials: undefined,
  isAdmin: false,
  readOnlyReason: new Refusal(
    'unauthenticated',
    'This daemon has no tokens: over TCP names may be asked for, but not changed.',
  ),
  readable: EVERYTHING,
  writable: [],
}

export function requireRead(principal: Principal, prefix: string): void {
  if (principal.readable.some(scope => prefix.startsWith(scope))) return
  throw new Refusal('forbidden', 'The token does not reach these names.')
}

export function requireWrite(principal: Principal, name?: string): void {
  if (principal.readOnlyReason !== undefined) throw principal.readOnlyReason
  const { writable } = principal
  const mayWrite = name === undefined ? writable.length > 0 : writable.some(scope => name.startsWith(scope))
  if (!mayWrite) throw new Refusal('forbidden', 'The token may not change these names.')
}

/** Whether the caller may change names and leases of `owner`. */
export function mayAct(principal: Principal, owner: string): boolean {
  return principal.isAdmin || principal.owner === owner
}
