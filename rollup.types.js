/**
 * Declarations that every compiler reads as they are, without `skipLibCheck` or `esModuleInterop`: modules of Node as namespaces. Each that
 * an entry point reaches is there once more as .d.cts, for `require`.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const ENTRIES = [
  'fastsockets/types',
  'fastsockets/metrics',
  'fastsockets/raw/index',
  'am/index',
  'am/rpc/index',
  'am/rpc/connect/index',
  'nic/index',
  'nameservice/index',
]
const SPECIFIER = /((?:from|import\() ?["'])(\.[^"']*)\.[jt]s(["'])/g
const DEFAULT_OF_NODE = /^import (?:type )?(\w+)(?:, (\{.*\}))? from (["']node:.*["']);$/gm
/** Its declarations are those of an ES module. */
const KOFFI = /import\('koffi'\)/g

export const declarations = {
  name: 'declarations',
  writeBundle({ dir }) {
    const seen = new Set()
    for (const entry of ENTRIES) mend(join(dir, `${entry}.d.ts`), seen)
  },
}

function mend(file, seen) {
  if (seen.has(file)) return
  seen.add(file)
  const text = readFileSync(file, 'utf8').replace(
    DEFAULT_OF_NODE,
    (_, name, others, from) =>
      `import type * as ${name} from ${from};${others === undefined ? '' : `\nimport ${others} from ${from};`}`,
  )
  for (const [, , to] of text.matchAll(SPECIFIER)) mend(join(dirname(file), `${to}.d.ts`), seen)
  writeFileSync(file, text)
  const required = text
    .replace(SPECIFIER, '$1$2.cjs$3')
    .replace(KOFFI, "import('koffi', { with: { 'resolution-mode': 'import' } })")
  writeFileSync(file.replace(/ts$/, 'cts'), required)
}
