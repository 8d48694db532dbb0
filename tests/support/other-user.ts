import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

export const NOBODY = 65534

/** Why no child of another user can run that file here, or false. */
export function noOtherUser(fixture: URL): string | false {
  if (process.getuid?.() !== 0) return 'needs root, to run a child as nobody'
  const read = ['-e', 'fs.accessSync(process.argv[1])', fileURLToPath(fixture)]
  const { status } = spawnSync(process.execPath, read, { uid: NOBODY, gid: NOBODY })
  return status === 0 ? false : 'nobody may not read the compiled tests'
}
