/** The peer of peer-process.test.ts: connects, and then becomes another program that keeps its connection. */
import { readdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { Worker } from 'node:worker_threads'
import { type Driver, drivers, type VirtualInterface } from '../../../nic/index.ts'
import { requireLibc } from '../../../nic/posix/libc.ts'

const F_SETFD = 2
const SPAWN_MS = 500

interface Question {
  readonly ask: 'connect' | 'exec'
  readonly blob?: string
  /** To `exec`: a copy of Node, and a FIFO. A child that waits for it shares this process's memory. */
  readonly beside?: { readonly copy: string; readonly fifo: string }
}

let end: VirtualInterface | undefined

process.on('message', async ({ ask, blob = '', beside }: Question) => {
  if (ask === 'exec') return beside === undefined ? becomeAnother() : becomeAnotherBeside(beside)
  const shm = drivers.get('shm') as Driver
  end = await shm.connect(Buffer.from(blob, 'base64'), { readsPeer: true })
  const { rdmaReason } = end.capabilities
  const { key } = rdmaReason ? { key: [] } : end.register(new Uint8Array(64), READABLE)
  process.send?.({ rdmaReason, key: Buffer.from(key).toString('base64') })
})

const READABLE = { remoteRead: true, remoteWrite: false }

const koffi = createRequire(import.meta.url)('koffi') as typeof import('koffi')

function becomeAnother(program = process.execPath): void {
  const libc = requireLibc()
  // The connection stays open, as it would if a child of this process kept it.
  for (const descriptor of readdirSync('/proc/self/fd')) libc.fcntl(Number(descriptor), F_SETFD, 0)
  const execv = koffi.load(null).func('int execv(const char *path, const char **argv)')
  execv(program, [program, '-e', 'setTimeout(() => {}, 60000)', null])
}

/** posix_spawn(3) makes a child that shares all memory (CLONE_VM) until it executes its program; this one opens the FIFO before that. */
function becomeAnotherBeside({ copy, fifo }: { copy: string; fifo: string }): void {
  new Worker(
    `const { workerData: fifo } = require('node:worker_threads')
    const library = require(${JSON.stringify(createRequire(import.meta.url).resolve('koffi'))}).load(null)
    const init = library.func('int posix_spawn_file_actions_init(void *actions)')
    const addOpen = library.func('int posix_spawn_file_actions_addopen(void *actions, int fd, const char *path, int flags, int mode)')
    const spawn = library.func('int posix_spawn(void *pid, const char *path, void *actions, void *attr, const char **argv, const char **envp)')
    const actions = Buffer.alloc(256)
    init(actions)
    addOpen(actions, 0, fifo, 0, 0)
    spawn(Buffer.alloc(8), '/bin/true', actions, null, ['true', null], [null])`,
    { eval: true, workerData: fifo },
  )
  // The call above does not return before the child has executed its program.
  setTimeout(() => becomeAnother(copy), SPAWN_MS)
}
