/**
 * Reads the policy file again when it has changed. A timer looks at the file; it keeps no program alive. A program without a
 * policy at its start has no timer, and gets none later.
 *
 * A change counts once two looks have found the same file: one that is being written in place is not read half. A file that is
 * gone or empty counts as one that is about to be written.
 */
import { AsyncResource } from 'node:async_hooks'
import { openLog } from '../../nic/index.ts'
import { setInterval } from '../../nic/real-time.ts'
import { isDisabled } from '../host/environment.ts'
import { findPolicyFile, stampOf } from './find-policy.ts'
import { firstStamp, ownPolicy, reloadPolicy } from './own-policy.ts'
import { PolicyError } from './policy-error.ts'

/** Two looks and the reading take less than a second. */
const LOOK_MS = 300
const log = openLog('fastsockets:policy')
/** Runs the timer outside the program's asynchronous contexts. */
const scope = new AsyncResource('FASTSOCKETS')

/** `error`: the file cannot be used; the policy in force, if there is one, stays. */
export interface PolicyEvent {
  readonly file: string
  /** Of the policy in force: the first 12 digits of the SHA-256 of its file. */
  readonly version: string | undefined
  readonly ruleCount: number
  readonly error?: PolicyError
}

/** Calls `onNews` after each change of the file. */
export function watchPolicy(onNews: (news: PolicyEvent) => void): void {
  if (findPolicyFile() === undefined || isDisabled()) return
  let read = firstStamp()
  let before = read
  const look = (): void => {
    const path = findPolicyFile()
    const now = stampOf(path)
    if (path === undefined || now === undefined || now === read) return
    const isSettled = now === before
    before = now
    if (!isSettled || isEmpty(now)) return
    read = now
    onNews(readAgain(path))
  }
  scope.runInAsyncScope(() => setInterval(look, LOOK_MS).unref())
}

function isEmpty(stamp: string): boolean {
  return / 0 \d+ \d+$/.test(stamp)
}

function readAgain(file: string): PolicyEvent {
  try {
    const { version, ruleCount } = reloadPolicy()
    log('%s is in force in version %s, with %d rules', file, version, ruleCount)
    return { file, version, ruleCount }
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error
    const { version, ruleCount = 0 } = ownPolicy() ?? {}
    const effect = version === undefined ? 'still without a policy' : `version ${version} stays in force`
    log('%s cannot be used, %s: %s', file, effect, error.message)
    process.emitWarning(`${effect}: ${error.message}`, { code: error.code })
    return { file, version, ruleCount, error }
  }
}
