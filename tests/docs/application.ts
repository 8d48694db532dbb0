/** An application as a user has it: the package is packed and installed into an empty folder, without install scripts. */
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statfsSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Test } from 'tap'
import { plainEnvironment } from '../support/child.ts'
import { extraCertificates } from '../support/plain-children.ts'

const run = promisify(execFile)
export const CHECKOUT = fileURLToPath(new URL('../../../', import.meta.url))

export interface Application {
  readonly folder: string
  /** The files of the package, from its root. */
  readonly packaged: ReadonlySet<string>
}

/** To make and remove its thousands of files takes some disks a minute. */
const MEMORY = '/dev/shm'
const MEMORY_MIN = 512 * 1024 * 1024

/** True if there is a file system in memory that has room, and that programs may be run from. */
function isMemoryFit(): boolean {
  const mounts = readFileSync('/proc/self/mounts', 'utf8')
  if (!/^\S+ \/dev\/shm tmpfs (?!\S*\bnoexec\b)/m.test(mounts)) return false
  const { bavail, bsize } = statfsSync(MEMORY)
  return bavail * bsize >= MEMORY_MIN
}

export async function installApplication(t: Test): Promise<Application> {
  const folder = mkdtempSync(join(isMemoryFit() ? MEMORY : tmpdir(), 'fastsockets-docs-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }))
  const env = { ...plainEnvironment(), NODE_EXTRA_CA_CERTS: extraCertificates }
  const packed = await run('npm', ['pack', '--ignore-scripts', '--json', '--pack-destination', folder], {
    cwd: CHECKOUT,
    env,
  })
  const [{ filename, files }] = JSON.parse(packed.stdout) as [{ filename: string; files: { path: string }[] }]
  writeFileSync(join(folder, 'package.json'), '{ "private": true }')
  await run(
    'npm',
    ['install', '--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund', `./${filename}`],
    {
      cwd: folder,
      env,
    },
  )
  // Optional, and other people's packages: as if the user had installed them.
  for (const name of ['@bufbuild', '@connectrpc', 'comlink']) {
    symlinkSync(join(CHECKOUT, 'node_modules', name), join(folder, 'node_modules', name))
  }
  return { folder, packaged: new Set(files.map(({ path }) => path)) }
}

/** The folder of a page, from which the package is found by its name; and a home with nothing in it. */
export function folderOfPage(
  { folder }: Application,
  page: string,
): { directory: string; env: NodeJS.ProcessEnv } {
  const name = page.replaceAll('/', '-').replace(/\.md$/, '')
  const directory = join(folder, 'pages', name)
  const home = join(folder, 'homes', name)
  for (const made of [directory, join(home, 'run'), join(home, 'tmp')]) mkdirSync(made, { recursive: true })
  // As users have it, and not as .taprc has it.
  const { FASTSOCKETS_START: _, ...plain } = plainEnvironment()
  const env = {
    ...plain,
    HOME: home,
    XDG_RUNTIME_DIR: join(home, 'run'),
    XDG_CONFIG_HOME: join(home, 'config'),
    XDG_STATE_HOME: join(home, 'state'),
    XDG_CACHE_HOME: join(home, 'cache'),
    TMPDIR: join(home, 'tmp'),
    npm_config_cache: process.env.npm_config_cache ?? join(process.env.HOME ?? home, '.npm'),
    npm_config_update_notifier: 'false',
  }
  return { directory, env }
}
