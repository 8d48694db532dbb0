/** The environment variables of this package: their names, and a warning of names that are none. */
import { createRequire } from 'node:module'
import { shownText } from '../../nic/shown-text.ts'

const require = createRequire(import.meta.url)

/** Keeps everything on TCP, whatever a policy says. */
export const DISABLE_VARIABLE = 'FASTSOCKETS_DISABLE'

/** All others, and the beginnings of those that have many forms: `..._NAMED_` are the daemon's settings. */
export const VARIABLES = [
  DISABLE_VARIABLE,
  'FASTSOCKETS_ABLATE',
  'FASTSOCKETS_DATAGRAMS',
  'FASTSOCKETS_DEMO_WITNESS',
  'FASTSOCKETS_DRIVERS',
  'FASTSOCKETS_GREETING_TIMEOUT_MS',
  'FASTSOCKETS_KEY_FILE',
  'FASTSOCKETS_KILLS',
  'FASTSOCKETS_NAMES',
  'FASTSOCKETS_NAMES_CA_FILE',
  'FASTSOCKETS_NAMES_TOKEN_FILE',
  'FASTSOCKETS_NIC',
  'FASTSOCKETS_POLICY',
  'FASTSOCKETS_RENDEZVOUS',
  'FASTSOCKETS_SCHEDULES',
  'FASTSOCKETS_START',
  'FASTSOCKETS_USE',
  'FASTSOCKETS_USERS',
  'FASTSOCKETS_VERBS_DEVICE',
  'FASTSOCKETS_VERBS_GID_INDEX',
  'FASTSOCKETS_VERBS_PORT',
  'FASTSOCKETS_ZCOPY_THRESHOLD',
]
const FAMILIES = /^FASTSOCKETS_(BENCH|NAMED|RDMA|TEST)_/
/** Kubernetes sets these for a service whose name begins with `fastsockets`. */
const OF_SERVICES = /_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_\w+)?)$/
const OFF = /^(0|false)?$/i
/** Further unknown names are not warned of. */
const WARNINGS_MAX = 8

/** Empty, `0` and `false` do not disable. */
export function isDisabled(env: NodeJS.ProcessEnv = process.env): boolean {
  return !OFF.test(env[DISABLE_VARIABLE] ?? '')
}

/** The names that begin as ours do and mean nothing. */
export function unknownVariables(env: NodeJS.ProcessEnv): string[] {
  return Object.keys(env).filter(
    name =>
      name.startsWith('FASTSOCKETS_') &&
      !VARIABLES.includes(name) &&
      !FAMILIES.test(name) &&
      !OF_SERVICES.test(name),
  )
}

/** Once per process. */
export function warnOfUnknownVariables(): void {
  const names = unknownVariables(process.env)
  if (names.length === 0) return
  const { isMainThread } = require('node:worker_threads') as typeof import('node:worker_threads')
  if (!isMainThread) return
  for (const name of names.slice(0, WARNINGS_MAX))
    process.emitWarning(`${shownText(name)} has no meaning${suggestion(name, VARIABLES)}`, {
      code: 'FASTSOCKETS_UNKNOWN_VARIABLE',
    })
}

/** `: did you mean ...?`, if one of `names` differs from `name` in at most half of its own letters. */
export function suggestion(name: string, names: readonly string[]): string {
  const { closest, distance } = require('fastest-levenshtein') as typeof import('fastest-levenshtein')
  const near = closest(name, names)
  const own = near.replace(/^FASTSOCKETS_/, '').length
  return distance(name, near) * 2 <= own ? `: did you mean ${near}?` : ''
}
