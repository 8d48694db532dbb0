/** The driver over the kernel's TCP, for the layers above. The first use loads all of it (tcp-driver.ts). */
import { createRequire } from 'node:module'
import type * as net from 'node:net'
import type { ConnectOptions, Driver, NetworkAddress, OfferOptions } from '../nic.ts'
import type { TcpPort } from './tcp-port.ts'

export type { TcpPort } from './tcp-port.ts'

type Rest = typeof import('./tcp-driver.ts')

const require = createRequire(import.meta.url)
let rest: Rest | undefined

function load(): Rest {
  rest ??= require('./tcp-driver.ts') as Rest
  return rest
}

export const tcpDriver: Driver = {
  name: 'tcp',
  reach: 'network',
  needsAddress: true,
  availability: () => load().availability(),
  offer: (options?: OfferOptions) => load().offer(options),
  connect: (blob: Uint8Array, options?: ConnectOptions) => load().connect(blob, options),
}

/** Connects to an address where a process listens for callers of any host that know the key. */
export function callTcpAddress(address: NetworkAddress, timeoutMs: number): Promise<net.Socket> {
  return load().callAddress(address, timeoutMs)
}

/** Listens at an address (tcp-port.ts). */
export function openTcpPort(
  address: NetworkAddress,
  handleControl: (socket: net.Socket) => void,
): Promise<TcpPort> {
  return load().openTcpPort(address, handleControl)
}

/** From now on a host that is silent for `peerTimeoutMs` ends this connection, even if nothing is sent. */
export function limitSilenceOf(socket: net.Socket, peerTimeoutMs: number): void {
  load().limitSilenceOf(socket, peerTimeoutMs)
}

/** The path of the key file; undefined if there is none. */
export function keyFile(): string | undefined {
  return load().keyFile()
}

/** The key; undefined if no file is named. Throws `ERR_NIC_KEY` if the file may not be used. */
export function readKey(): Buffer | undefined {
  return load().readKey()
}
