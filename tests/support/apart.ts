/** Runs test files with one process of each pair in each of two containers, or on each of two hosts. */
import { type SpawnSyncReturns, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { keyFileOf, makeTwoHosts } from '../../bench/two-hosts.ts'
import { CONTAINERS_VARIABLE, LISTEN_VARIABLE } from './placement.ts'

interface Test {
  teardown(end: () => unknown): void
}

const CHILDREN = new URL('./plain-children.js', import.meta.url).href

/** Runs those tests of a file, below tests/ and without its ending, whose names match. */
export type RunApart = (file: string, names: RegExp) => SpawnSyncReturns<string>

/** Containers and folder are removed when the test ends. `driver`: between hosts, which share no rendezvous folder. */
export function makeApart(t: Test, driver?: string): RunApart {
  const folder = mkdtempSync(join(tmpdir(), 'rendezvous-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const { near, far } = makeTwoHosts(t)
  const container = [
    'netns',
    'exec',
    near.namespace,
    'unshare',
    '--mount',
    '--ipc',
    '--uts',
    process.execPath,
  ]
  // Not those of a tap that runs this process.
  const own = Object.entries(process.env).filter(
    ([name]) => !name.startsWith('TAP') && name !== 'NODE_OPTIONS',
  )
  const env = {
    ...Object.fromEntries(own),
    [CONTAINERS_VARIABLE]: `${near.namespace} ${far.namespace} ${far.address}`,
    ...(driver === undefined
      ? { FASTSOCKETS_RENDEZVOUS: folder, FASTSOCKETS_TEST_DRIVER: 'shm' }
      : {
          FASTSOCKETS_RENDEZVOUS: 'off',
          FASTSOCKETS_TEST_DRIVER: driver,
          FASTSOCKETS_KEY_FILE: keyFileOf(t),
          [LISTEN_VARIABLE]: '0.0.0.0:0',
        }),
    FASTSOCKETS_START: 'fast',
    FASTSOCKETS_GREETING_TIMEOUT_MS: '2000',
    TAP_TIMEOUT: '600',
  }
  return (file, names) => {
    const path = fileURLToPath(new URL(`../${file}.test.js`, import.meta.url))
    return spawnSync('ip', [...container, `--import=${CHILDREN}`, path], {
      env: { ...env, TAP_GREP: String(names) },
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'inherit'],
      maxBuffer: 1 << 28,
    })
  }
}
