/** The tests of a Node source tree: where they are, and with which flags each wants to be started. */
import { closeSync, existsSync, openSync, readdirSync, readSync } from 'node:fs'
import { join } from 'node:path'

/** Where Node's own test helper looks for the flags, too. */
const HEAD_SIZE = 1500

/** What relinking could break. */
export const DEFAULT_GLOB =
  '{parallel,sequential}/test-{net,tls,http,https,http2,dgram,cluster,child-process}-*.{js,mjs}'

export interface TestFile {
  /** Folder and file, as `parallel/test-net-connect-options.js`. */
  readonly name: string
  readonly path: string
  readonly flags: readonly string[]
  /** It may use a fixed port: nothing else runs beside it. */
  readonly isSequential: boolean
}

/** `directory` is a Node source tree, or its `test` folder. Globs are relative to the latter. */
export function findTests(directory: string, globs: readonly string[]): TestFile[] {
  const root = existsSync(join(directory, 'test', 'common')) ? join(directory, 'test') : directory
  const patterns = globs.map(globToPattern)
  return readdirSync(root, { withFileTypes: true })
    .filter(entry => entry.isDirectory())
    .flatMap(folder => readdirSync(join(root, folder.name)).map(file => `${folder.name}/${file}`))
    .filter(name => patterns.some(pattern => pattern.test(name)))
    .sort()
    .map(name => {
      const path = join(root, name)
      return { name, path, flags: flagsOf(path), isSequential: !name.startsWith('parallel/') }
    })
}

/** Knows `*`, `?` and `{a,b}`; a star stops at a slash. */
export function globToPattern(glob: string): RegExp {
  const source = glob
    .replace(/[.+^$()|[\]\\]/g, '\\$&')
    .replaceAll('?', '[^/]')
    .replaceAll('*', '[^/]*')
    .replace(/\{([^}]*)\}/g, (_, list: string) => `(?:${list.replaceAll(',', '|')})`)
  return new RegExp(`^${source}$`)
}

/** The words after `// Flags:` near the top of a test. */
function flagsOf(path: string): string[] {
  const bytes = Buffer.alloc(HEAD_SIZE)
  const fd = openSync(path, 'r')
  const length = readSync(fd, bytes)
  closeSync(fd)
  const line = /\/\/ Flags:\s+(--[^\r\n]*)/.exec(bytes.toString('utf8', 0, length))?.[1]
  return line?.split(/\s+/).filter(Boolean) ?? []
}
