/** The peer of peer-process.test.ts: connects, and then becomes another program that keeps its connection. */
import { readdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { type Driver, drivers, type VirtualInterface } from '../../../nic/index.ts'
import { requireLibc } from '../../../nic/posix/libc.ts'

const F_SETFD = 2

interface Question {
  readonly ask: 'connect' | 'exec'
  readonly blob?: string
}

let end: VirtualInterface | undefined

process.on('message', async ({ ask, blob = '' }: Question) => {
  if (ask === 'exec') return becomeAnother()
  const shm = drivers.get('shm') as Driver
  end = await shm.connect(Buffer.from(blob, 'base64'), { readsPeer: true })
  const { rdmaReason } = end.capabilities
  const { key } = rdmaReason ? { key: [] } : end.register(new Uint8Array(64), READABLE)
  process.send?.({ rdmaReason, key: Buffer.from(key).toString('base64') })
})

const READABLE = { remoteRead: true, remoteWrite: false }

function becomeAnother(): void {
  const libc = requireLibc()
  // The connection stays open, as it would if a child of this process kept it.
  for (const descriptor of readdirSync('/proc/self/fd')) libc.fcntl(Number(descriptor), F_SETFD, 0)
  const koffi = createRequire(import.meta.url)('koffi') as typeof import('koffi')
  const execv = koffi.load(null).func('int execv(const char *path, const char **argv)')
  execv(process.execPath, [process.execPath, '-e', 'setTimeout(() => {}, 60000)', null])
}
