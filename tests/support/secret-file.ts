import { chmodSync, copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** A copy that only this user may read: Git keeps no such modes. Removed when the process exits. */
export function secretCopy(source: URL): string {
  const folder = mkdtempSync(join(tmpdir(), 'secret-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  const copy = join(folder, basename(source.pathname))
  copyFileSync(fileURLToPath(source), copy)
  chmodSync(copy, 0o600)
  return copy
}
