/** The helper of `fastsockets nic open`: passes packet sockets to programs that may open none (opening-layout.ts). */
import net from 'node:net'
import { NicError } from '../errors.ts'
import { openLog } from '../log.ts'
import { type Libc, requireLibc } from '../posix/libc.ts'
import { peerCredentials, refuseDescriptors, sendMessage } from '../posix/unix-socket.ts'
import { clearTimeout, setTimeout } from '../real-time.ts'
import { lockFilter, openOwn } from './open-socket.ts'
import { decodeRequest, encodeAnswer, REQUEST_SIZE } from './opening-layout.ts'

const log = openLog('fastsockets:nic')

/** Callers that have not asked yet, and how long one may take. */
const CALLERS_MAX = 64
const REQUEST_MS_MAX = 1000

export interface SocketHelper {
  close(): void
}

/**
 * Listens at `path`, a unix socket that must not exist, until `close`. Each process of one of `users` gets as many sockets
 * as it asks for. Rejects if this program may not open packet sockets, or cannot listen.
 */
export async function openSocketHelper(path: string, users: readonly number[]): Promise<SocketHelper> {
  const libc = requireLibc()
  const fd = openOwn(libc, Buffer.alloc(8))
  if (fd < 0)
    throw new NicError('ERR_NIC_UNAVAILABLE', `raw frames need CAP_NET_RAW (${libc.errnoName(-fd)})`)
  libc.close(fd)
  const server = new net.Server({ pauseOnConnect: false })
  server.maxConnections = CALLERS_MAX
  server.on('connection', caller => {
    // At once: callers of other users take no places.
    if (isCallerOf(libc, caller, users)) serve(libc, caller)
    else caller.destroy()
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    // The kernel names the user of each caller, so that the file need not.
    server.listen({ path, readableAll: true, writableAll: true }, resolve)
  })
  refuseDescriptors(server)
  return { close: () => server.close() }
}

function serve(libc: Libc, caller: net.Socket): void {
  refuseDescriptors(caller)
  const timer = setTimeout(() => caller.destroy(), REQUEST_MS_MAX)
  caller.on('close', () => clearTimeout(timer))
  caller.on('error', error => log('caller: %s', error.message))
  let received = Buffer.alloc(0)
  caller.on('data', bytes => {
    received = Buffer.concat([received, bytes])
    if (received.length < REQUEST_SIZE) return
    const id = decodeRequest(received)
    if (id !== undefined) answer(libc, caller, id)
    caller.destroy()
  })
}

function isCallerOf(libc: Libc, caller: net.Socket, users: readonly number[]): boolean {
  try {
    const { uid, pid } = peerCredentials(libc, descriptorOf(caller))
    if (!users.includes(uid)) log('user %d (pid %d) may have no sockets', uid, pid)
    return users.includes(uid)
  } catch (error) {
    log('a caller whom the kernel does not name: %s', (error as Error).message)
    return false
  }
}

function descriptorOf(caller: net.Socket): number {
  return (caller as unknown as { _handle: { fd: number } })._handle.fd
}

function answer(libc: Libc, caller: net.Socket, id: Buffer): void {
  const fd = openOwn(libc, id)
  try {
    if (fd >= 0 && !lockFilter(libc, fd)) return log('the filter cannot be locked')
    sendMessage(libc, descriptorOf(caller), encodeAnswer(Math.max(0, -fd)), fd < 0 ? [] : [fd])
  } catch (error) {
    log('answer: %s', (error as Error).message)
  } finally {
    if (fd >= 0) libc.close(fd)
  }
}
