/** Checks for optional packages. */
import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)

/** Why something that needs `names` cannot run, in one line; undefined if all are installed. */
export async function missingPackage(...names: string[]): Promise<string | undefined> {
  const missing = names.filter(name => !isInstalled(name))
  if (missing.length === 0) return undefined
  const [what, be] = missing.length === 1 ? ['the package', 'is'] : ['the packages', 'are']
  return `${what} ${missing.join(', ')} ${be} not installed: npm install ${missing.join(' ')}`
}

function isInstalled(name: string): boolean {
  try {
    require.resolve(name)
    return true
  } catch (error) {
    // A package for ES modules only is there all the same.
    return (error as NodeJS.ErrnoException).code === 'ERR_PACKAGE_PATH_NOT_EXPORTED'
  }
}
