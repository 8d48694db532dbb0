/**
 * Where the programs of a test run: beside it, or in two containers of one host (`npm run test:containers`). Then the test
 * itself runs in the network of the near container, its servers and peers in the far one, and both see one rendezvous folder.
 */
import type { ForkOptions } from 'node:child_process'
import { readFileSync } from 'node:fs'

/** The namespaces besides the network's that make a container. */
export const NAMESPACES = ['--mount', '--pid', '--ipc', '--uts', '--fork', '--kill-child', '--mount-proc']

export const CONTAINERS_VARIABLE = 'FASTSOCKETS_TEST_CONTAINERS'
export const LISTEN_VARIABLE = 'FASTSOCKETS_TEST_LISTEN'

/** The network namespaces, and an address of the far one: where the servers of tests listen and their clients call them. */
const [near, far, address] = process.env[CONTAINERS_VARIABLE]?.split(' ') ?? []

export const HOST = address ?? '127.0.0.1'
export const areApart = far !== undefined
/** For drivers: the other process is in another network namespace. */
export const REACH = areApart ? { isThroughFolder: true } : {}

/** For a client whose server is another child. */
export function clientSide(options: ForkOptions = {}): ForkOptions {
  return near === undefined ? options : inContainer(near, options)
}

/** What `Child` does with all children that have no executable of their own. */
export function otherSide(options: ForkOptions): ForkOptions {
  return far === undefined || options.execPath !== undefined ? options : inContainer(far, options)
}

function inContainer(namespace: string, options: ForkOptions): ForkOptions {
  const container = ['netns', 'exec', namespace, 'unshare', ...NAMESPACES, process.execPath]
  return { ...options, execPath: 'ip', execArgv: [...container, ...(options.execArgv ?? [])] }
}

/** The process that `unshare` has started, as this process sees it, if `pid` is an `unshare`. */
export function programOf(pid: number): number {
  if (!areApart) return pid
  const child = Number.parseInt(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8'), 10)
  return Number.isNaN(child) ? pid : child
}
