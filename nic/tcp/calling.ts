/** Calls a listener (tcp-listener.ts): resolves the name, connects, and proves who calls. */
import type net from 'node:net'
import { NicError } from '../errors.ts'
import type { NetworkAddress } from '../nic.ts'
import { newOwnSocket } from '../own-sockets.ts'
import { clearTimeout, setTimeout } from '../real-time.ts'
import { type Calling, introduce } from './handshake.ts'
import { isLoopback } from './peer-user.ts'
import { noKeyError, readKey } from './shared-key.ts'

export const LOOPBACK_HOST = '127.0.0.1'

/** Resolves with the connected, authenticated socket. */
export async function callListener(
  address: NetworkAddress,
  calling: Calling,
  timeoutMs: number,
): Promise<net.Socket> {
  const socket = newOwnSocket()
  const where = `${address.host}:${address.port}`
  socket.on('error', () => {})
  const timer = setTimeout(() => {
    socket.destroy(new NicError('ERR_NIC_CONNECT_FAILED', `the listener sent nothing within ${timeoutMs} ms`))
  }, timeoutMs)
  try {
    await connected(socket, address)
    if (calling.key === undefined && !isLoopback(socket.remoteAddress)) throw noKeyError(where)
    await introduce(socket, calling)
    return socket
  } catch (error) {
    socket.destroy()
    const { code, message, errno, syscall } = error as NicError
    throw new NicError(code, `${where}: ${message}`, {
      ...(errno === undefined ? {} : { errno }),
      ...(syscall === undefined ? {} : { syscall }),
    })
  } finally {
    clearTimeout(timer)
  }
}

/** Connects to an address where a process listens for callers of any host that know the key. */
export function callAddress(address: NetworkAddress, timeoutMs: number): Promise<net.Socket> {
  return callListener(address, { key: readKey(), checksUser: true, offer: undefined }, timeoutMs)
}

function connected(socket: net.Socket, { host, port }: NetworkAddress): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once('connect', resolve)
    socket.once('close', () => {
      const cause = socket.errored as NodeJS.ErrnoException | null
      if (cause instanceof NicError) return reject(cause)
      const details = { syscall: 'connect', errno: Math.abs(cause?.errno ?? 0) }
      reject(new NicError('ERR_NIC_CONNECT_FAILED', cause?.message || 'the connection was closed', details))
    })
    socket.connect({ host, port, noDelay: true })
  })
}
