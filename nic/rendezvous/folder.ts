/** Which folder is the rendezvous folder of this program, and why it cannot be used. */
import { accessSync, constants, lstatSync, statSync } from 'node:fs'
import { isAbsolute } from 'node:path'
import { policySettings } from '../policy-source.ts'

export const RENDEZVOUS_VARIABLE = 'FASTSOCKETS_RENDEZVOUS'
const FOLDER_DEFAULT = '/run/fastsockets/rendezvous'
/** The value that stands for no folder. */
const OFF = 'off'

/** The folder's path, whether it exists or not; undefined if the program is to use none. */
export function rendezvousFolder(): string | undefined {
  const folder = process.env[RENDEZVOUS_VARIABLE] || policySettings().rendezvous || FOLDER_DEFAULT
  return folder === OFF || !isAbsolute(folder) ? undefined : folder
}

/** A hint that costs a microsecond: whether the folder has such a name. A link is one: it may lead to a file system that never answers. */
export function hasName(name: string, folder = rendezvousFolder()): boolean {
  try {
    return folder !== undefined && lstatSync(`${folder}/${name}`, { throwIfNoEntry: false }) !== undefined
  } catch {
    return false
  }
}

/** Why no name can be published or, if not `mayWrite`, found in the folder; undefined if it can be used. */
export function reasonAgainstFolder(mayWrite: boolean, folder = rendezvousFolder()): string | undefined {
  if (folder === undefined) return `${RENDEZVOUS_VARIABLE} or the policy names no absolute path`
  try {
    const stat = statSync(folder, { throwIfNoEntry: false })
    if (stat === undefined) return `the rendezvous folder ${folder} does not exist`
    if (!stat.isDirectory()) return `the rendezvous folder ${folder} is no folder`
    accessSync(folder, constants.X_OK | (mayWrite ? constants.W_OK : 0))
    return undefined
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const lack = mayWrite ? 'written to' : 'searched'
    return `the rendezvous folder ${folder} cannot be ${lack}: ${code ?? (error as Error).message}`
  }
}
