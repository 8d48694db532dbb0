/** The policy of this program: that of the file, overridden by environment variables. */
import { realpathSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, isAbsolute } from 'node:path'
import { providePolicySettings } from '../../nic/policy-source.ts'
import { isDisabled } from '../host/environment.ts'
import { uidOfName } from '../host/user-names.ts'
import { findPolicyFile, stampOf } from './find-policy.ts'
import { type Decision, NO_POLICY, type Policy } from './policy.ts'
import { PolicyError } from './policy-error.ts'
import { DRIVERS, type Role, USER_ID_MAX, type Use } from './policy-schema.ts'
import { DATAGRAMS_VARIABLE, START_VARIABLE } from './start-variable.ts'
import { nameInRules } from './unix-names.ts'

export const USE_VARIABLE = 'FASTSOCKETS_USE'
export const USERS_VARIABLE = 'FASTSOCKETS_USERS'
export const DRIVERS_VARIABLE = 'FASTSOCKETS_DRIVERS'
/** A number of bytes enables ZCopy within a host, from that size on; `off` disables it. */
export const ZCOPY_VARIABLE = 'FASTSOCKETS_ZCOPY_THRESHOLD'

const require = createRequire(import.meta.url)
const USES: readonly string[] = ['fast', 'tcp', 'require']

providePolicySettings(() => ownPolicy()?.settings ?? {})

let policy: Policy | undefined
let failure: PolicyError | undefined
let stamp: string | undefined
let program = ''
let programStarted: string | undefined

/** Decisions by rule: of the default first, then of each rule by its number; the last counts all further rules. As on the status page. */
const HITS_COUNT = 64
let hits: Float64Array = new Float64Array(HITS_COUNT)

/**
 * The policy in force, read on first use and by `reloadPolicy`. Undefined if it is invalid: then nothing is fast, and
 * `policyFailure` says why. None is read where FASTSOCKETS_DISABLE is set.
 */
export function ownPolicy(): Policy | undefined {
  if (policy !== undefined || failure !== undefined) return policy
  try {
    stamp = stampOf(findPolicyFile())
    policy = isDisabled() ? NO_POLICY : loadPolicy()
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error
    failure = error
    const effect = failsClosed(error) ? 'no connection is allowed' : 'everything stays on TCP'
    process.emitWarning(`${effect}: ${error.message}`, { code: error.code })
  }
  return policy
}

/** Puts the file, as it is now, in force. Throws a `PolicyError` if it is invalid; the policy in force then stays. */
export function reloadPolicy(): Policy {
  const read = loadPolicy()
  policy = read
  failure = undefined
  hits.fill(0)
  return read
}

/** The file as `ownPolicy` has found it first. */
export function firstStamp(): string | undefined {
  ownPolicy()
  return stamp
}

/** Counts go on in `words`, of HITS_COUNT numbers. */
export function moveHits(words: Float64Array): void {
  words.set(hits.subarray(0, words.length))
  hits = words
}

export function policyFailure(): PolicyError | undefined {
  ownPolicy()
  return failure
}

/** True if the invalid policy may have said `require`: then nothing may fall back to TCP. The variable goes over the file. */
function failsClosed({ mentionsRequire }: PolicyError): boolean {
  const { [USE_VARIABLE]: use } = process.env
  return use ? use === 'require' : mentionsRequire
}

/** The decision for a connection or a listener of this program. */
export function decide(role: Role, address: string | undefined, port: number): Decision {
  const own = ownPolicy()
  if (own === undefined) {
    const use = failure !== undefined && failsClosed(failure) ? 'require' : 'tcp'
    return { use, because: failure?.message ?? '', rule: 0, isForAddress: false }
  }
  if (own === NO_POLICY) return FAST
  return counted(own.decide(ownProgram(), role, address, port))
}

/** The same for a unix socket, by the path that the program uses. */
export function decidePath(role: Role, path: string): Decision {
  const own = ownPolicy()
  if (own === undefined || own === NO_POLICY) return decide(role, undefined, 0)
  return counted(own.decidePath(ownProgram(), role, nameInRules(path)))
}

function counted(decision: Decision): Decision {
  const at = Math.min(decision.rule, hits.length - 1)
  hits[at] = (hits[at] as number) + 1
  return decision
}

const FAST: Decision = { use: 'fast', because: 'no policy file', rule: 0, isForAddress: false }

/** Whether the fast way may be used with a process of user `uid`. */
export function allowsUser(uid: number): boolean {
  return ownPolicy()?.allowsUser(uid) ?? false
}

export function allowsDriver(name: string): boolean {
  return ownPolicy()?.allowsDriver(name) ?? false
}

/**
 * Whether a process of this host and user may read and write our memory for large transfers, if it allows us the same.
 * The environment variable overrides the policy.
 */
export function allowsPeerMemory(policy: Policy | undefined = ownPolicy()): boolean {
  const asked = process.env[ZCOPY_VARIABLE] ?? ''
  if (asked === 'off') return false
  return /^\d+$/.test(asked) || (policy?.zcopy ?? false)
}

/** Whether connections start on TCP. The environment variable overrides the policy. */
export function startsOnTcp(policy: Policy | undefined = ownPolicy()): boolean {
  return (process.env[START_VARIABLE] || policy?.start) !== 'fast'
}

/** Whether datagrams of `node:dgram` may go past the kernel. The environment variable overrides the policy. */
export function allowsDatagrams(policy: Policy | undefined = ownPolicy()): boolean {
  if (policy === undefined) return false
  return (process.env[DATAGRAMS_VARIABLE] || policy.datagrams || 'fast') === 'fast'
}

/** Few programs have a policy: only they load what reads it. */
function readPolicy(path: string): Policy {
  const { readPolicyFile } = require('./policy-file.ts') as typeof import('./policy-file.ts')
  return readPolicyFile(path)
}

/** Throws a `PolicyError` if the file or an environment variable is invalid. */
export function loadPolicy(env: NodeJS.ProcessEnv = process.env): Policy {
  const path = findPolicyFile(env)
  const read = path === undefined ? NO_POLICY : readPolicy(path)
  const { [USE_VARIABLE]: use, [USERS_VARIABLE]: users, [DRIVERS_VARIABLE]: drivers } = env
  let result = read
  if (use) {
    if (!USES.includes(use)) throw environmentError(USE_VARIABLE, `must be fast, tcp or require, not ${use}`)
    result = result.with({ default: use as Use, defaultBecause: `${USE_VARIABLE}=${use}`, rules: [] })
  }
  const { [START_VARIABLE]: start } = env
  if (start && start !== 'tcp' && start !== 'fast')
    throw environmentError(START_VARIABLE, `must be fast or tcp, not ${start}`)
  const { [DATAGRAMS_VARIABLE]: datagrams } = env
  if (datagrams && datagrams !== 'fast' && datagrams !== 'kernel')
    throw environmentError(DATAGRAMS_VARIABLE, `must be fast or kernel, not ${datagrams}`)
  if (users) {
    // `Number('')` is 0, which is root.
    const uids = listOf(users).map(user => (/^\d{1,10}$/.test(user) ? Number(user) : uidOfName(user)))
    if (!uids.every(uid => uid !== undefined && uid <= USER_ID_MAX)) {
      throw environmentError(
        USERS_VARIABLE,
        `must be users, by id or name, with commas between, not ${users}`,
      )
    }
    result = result.with({ users: uids as number[] })
  }
  if (drivers) {
    const names = listOf(drivers)
    if (!names.every(name => (DRIVERS as readonly string[]).includes(name))) {
      throw environmentError(DRIVERS_VARIABLE, `must be of ${DRIVERS.join(', ')}, not ${drivers}`)
    }
    result = result.with({ drivers: names })
  }
  return result
}

/** A program of pm2, which loads that of the user. */
const PM2 = /\/pm2\/lib\/ProcessContainer\w*\.js$/

/** The path of the running program, as rules see it. Tools that load the user's program, such as ts-node, put it into `argv`. */
export function ownProgram(): string {
  const { argv, execPath, env } = process
  const started = argv[1] ?? execPath
  if (started !== programStarted) {
    programStarted = started
    program = programOf((PM2.test(started) && env.pm_exec_path) || started)
  }
  return program
}

/**
 * The name in rules of a program that was started as `path`: its file, as Node finds it (`node .`, `node server`),
 * links followed.
 */
export function programOf(path: string): string {
  try {
    return realpathSync(isAbsolute(path) ? complete(path) : path)
  } catch {
    return path
  }
}

function complete(path: string): string {
  if (statSync(path, { throwIfNoEntry: false })?.isFile()) return path
  // Resolves a relative name: Node would cache the resolution of `path` itself for the program that it is about to
  // start.
  return createRequire(path).resolve(`./${basename(path)}`)
}

function listOf(text: string): string[] {
  return text.split(',').map(part => part.trim())
}

function environmentError(variable: string, text: string): PolicyError {
  return new PolicyError(variable, [{ line: 0, rule: undefined, text }])
}
