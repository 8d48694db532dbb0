/** An address of this thread at which callers of other hosts reach its endpoints. */
import { lookup } from 'node:dns/promises'
import type * as net from 'node:net'
import { networkInterfaces } from 'node:os'
import type { NetworkAddress } from '../nic.ts'
import { isLoopback } from './peer-user.ts'
import { noKeyError, readKey } from './shared-key.ts'
import { TcpListener } from './tcp-listener.ts'

const EVERY_ADDRESS: readonly string[] = ['0.0.0.0', '::']

export interface TcpPort {
  /**
   * Where other hosts reach the port: for the wildcard address, the first address of a running network device. Undefined
   * if there is none.
   */
  readonly address: NetworkAddress | undefined
  close(): void
}

/**
 * Listens. `handleControl` takes over authenticated connections that take up no offer. Rejects with `ERR_NIC_KEY` if
 * there is no key and other hosts could call, and with the error of listen(2).
 */
export async function openTcpPort(
  { host, port }: NetworkAddress,
  handleControl: (socket: net.Socket) => void,
): Promise<TcpPort> {
  const key = readKey()
  const { address, family } = await lookup(host)
  if (key === undefined && !isLoopback(address)) throw noKeyError(`${host}:${port}`)
  const listener = new TcpListener({ key, isLocal: false }, handleControl)
  await listener.listenAt(address, port)
  const reached = EVERY_ADDRESS.includes(address) ? deviceAddressOf(family) : address
  return {
    address: reached === undefined ? undefined : { host: reached, port: listener.port },
    close: () => listener.close(),
  }
}

function deviceAddressOf(family: number): string | undefined {
  const addresses = Object.values(networkInterfaces()).flatMap(list => list ?? [])
  // A link-local address means nothing on another host without its scope.
  const fit = addresses.filter(({ internal, scopeid }) => !internal && !scopeid)
  return (fit.find(it => it.family === `IPv${family}`) ?? fit[0])?.address
}
