/** The version of this package, from its package.json. */
import { readFileSync } from 'node:fs'

const PACKAGE_JSON = new URL('../../../package.json', import.meta.url)

export function packageVersion(): string {
  const { version } = JSON.parse(readFileSync(PACKAGE_JSON, 'utf8')) as { version: string }
  return version
}
