/**
 * Two containers of one host, as a container runtime would make them: each process has network, mount, pid, ipc and uts
 * namespaces of its own, perhaps a user namespace, and sees one shared folder. Needs root and iproute2.
 */
import { type SpawnSyncReturns, spawnSync } from 'node:child_process'
import { chmodSync, chownSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Child, plainEnvironment } from './child.ts'
import { NAMESPACES } from './placement.ts'
import { REGISTER } from './relinked.ts'
import { type Host, makeTwoHosts, noTwoHosts } from './two-hosts.ts'

interface Test {
  teardown(end: () => Promise<void> | void): void
}

/** Why there can be no containers here, or false. */
export function noContainers(): string | false {
  const without = noTwoHosts()
  if (without) return without
  const { status, stderr } = spawnSync('unshare', [...NAMESPACES, 'true'], {
    encoding: 'utf8',
  }) as SpawnSyncReturns<string>
  return status === 0 ? false : `no namespaces can be made: ${stderr}`
}

export interface Containers {
  readonly near: Host
  readonly far: Host
  /** The rendezvous folder. */
  readonly folder: string
}

export interface ContainerOptions {
  /** The user of the processes, root by default. */
  readonly uid?: number
  /** A user namespace of its own, in which that user is root and no other user is known. */
  readonly hasUserNamespace?: boolean
  readonly env?: NodeJS.ProcessEnv
  readonly isPlain?: boolean
  /** Modules that run before Fast Sockets. */
  readonly preloads?: readonly URL[]
  /** A program of programs/ that executes the actual one, and passes on the descriptor PARENT_CHANNEL. */
  readonly launcher?: URL
  /** Shell commands of root in the container's mount namespace, before the program starts. */
  readonly before?: string
}

/** Removed when the test ends. `mode` and `owner` are the folder's. */
export function makeContainers(t: Test, mode = 0o700, owner = 0): Containers {
  const folder = mkdtempSync(join(tmpdir(), 'rendezvous-'))
  chownSync(folder, owner, owner)
  chmodSync(folder, mode)
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  return { ...makeTwoHosts(t), folder }
}

/** A relinked program in the container. */
export function childIn(
  t: { teardown(end: () => Promise<void>): void },
  { folder }: Pick<Containers, 'folder'>,
  { namespace }: Host,
  fixture: URL,
  args: readonly string[] = [],
  {
    uid,
    hasUserNamespace = false,
    env = {},
    isPlain = false,
    preloads = [],
    launcher,
    before = 'true',
  }: ContainerOptions = {},
): Child {
  // The shell stays as the first process of the container, which dies with it: the kernel forgets that a process is to die
  // with its parent once the process changes its user.
  const user = uid === undefined ? '' : `setpriv --reuid ${uid} --regid ${uid} --clear-groups --`
  const mapped = hasUserNamespace ? 'unshare --user --map-user=0 --' : ''
  const modules = isPlain ? preloads : [...preloads, REGISTER]
  const launch = launcher && [process.execPath, fileURLToPath(launcher)]
  // Node takes the channel of NODE_CHANNEL_FD, and leaves it to no other program.
  const hide = launcher ? 'export PARENT_CHANNEL=$NODE_CHANNEL_FD && unset NODE_CHANNEL_FD' : 'true'
  const command = `${before} && ${hide} && ${user} ${mapped} "$@"; exit $?`
  return new Child(t, fixture, args, {
    execPath: 'ip',
    execArgv: [
      ...['netns', 'exec', namespace, 'unshare', ...NAMESPACES, 'sh', '-c', command, 'sh'],
      ...(launch ?? []),
      ...[process.execPath, ...modules.flatMap(({ href }) => ['--import', href])],
    ],
    env: { ...plainEnvironment(), FASTSOCKETS_RENDEZVOUS: folder, FASTSOCKETS_START: 'fast', ...env },
  })
}

/** The names in the folder. */
export function namesIn({ folder }: Pick<Containers, 'folder'>): string[] {
  return readdirSync(folder).sort()
}

/** A name that a killed process has left. */
export async function leaveName(path: string): Promise<void> {
  const server = createServer()
  await new Promise<void>(resolve => server.listen(`${path}-new`, resolve))
  renameSync(`${path}-new`, path)
  await new Promise(resolve => server.close(resolve))
}
