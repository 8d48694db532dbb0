import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { home } from '../host/home.ts'

export const POLICY_VARIABLE = 'FASTSOCKETS_POLICY'
const FILE_NAME = 'fastsockets/policy.yaml'
const USER_FOLDER = '.config'
const SYSTEM_FOLDER = '/etc'

/**
 * The file in force: the one that the environment names, else the user's, else the system's; undefined if there is
 * none.
 */
export function findPolicyFile(env: NodeJS.ProcessEnv = process.env): string | undefined {
  const named = env[POLICY_VARIABLE]
  if (named) return named
  const folder = home()
  const userFolder = env.XDG_CONFIG_HOME || (folder && join(folder, USER_FOLDER))
  const folders = userFolder ? [userFolder, SYSTEM_FOLDER] : [SYSTEM_FOLDER]
  // A folder that may not be entered (HOME of another user, say) does not belong to this user.
  return folders.map(it => join(it, FILE_NAME)).find(mayExist)
}

/**
 * If Node's permission model hides the path, the file may exist and forbid the fast way: true, so that reading it
 * fails.
 */
function mayExist(path: string): boolean {
  try {
    return existsSync(path)
  } catch {
    return true
  }
}

/** Another text for another file, and for one that was written to, exchanged, or has other rights. Undefined without a file. */
export function stampOf(path: string | undefined): string | undefined {
  if (path === undefined) return undefined
  try {
    const { ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true })
    return `${path} ${ino} ${size} ${mtimeNs} ${ctimeNs}`
  } catch {
    return undefined
  }
}
