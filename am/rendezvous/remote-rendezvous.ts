/**
 * Rendezvous for endpoints of other hosts: a TCP port at the address of the network device, for endpoints that
 * have published a name. The name's record has the port, and the endpoint's number, without which no caller is
 * answered.
 */
import { once } from 'node:events'
import net from 'node:net'
import { type Driver, deviceAddress, markOwn, openLog } from '../../nic/index.ts'
import { Reception, type RendezvousHost } from './reception.ts'
import type { TcpAddress } from './tcp-address.ts'

const log = openLog('fastsockets:am:rendezvous')

/** Most callers that are not answered yet: memory may be promised to each. */
const REMOTE_CALLERS_MAX = 64
/** Idle time after which the kernel probes the other host. */
export const KEEP_ALIVE_MS = 10_000
const LINK_LOCAL = /^fe[89ab]/

export class RemoteRendezvous {
  readonly #addressHere: () => string | undefined
  readonly #hosts = new Map<string, RendezvousHost>()
  readonly #reception = new Reception(REMOTE_CALLERS_MAX, 'rdma', endpoint => this.#hosts.get(endpoint))
  #server: net.Server | undefined
  #listening: Promise<unknown> | undefined

  constructor(addressHere = deviceAddress) {
    this.#addressHere = addressHere
  }

  /**
   * Lets callers on other hosts ask for the endpoint. Resolves to the address; undefined if no network device here
   * has one.
   */
  async open(endpoint: string, host: RendezvousHost): Promise<TcpAddress | undefined> {
    const address = this.#addressHere()
    if (address === undefined || LINK_LOCAL.test(address)) return undefined
    this.#hosts.set(endpoint, host)
    if (this.#server === undefined) {
      this.#server = net.createServer(socket => {
        socket.setNoDelay(true)
        socket.setKeepAlive(true, KEEP_ALIVE_MS)
        this.#reception.meet(socket)
      })
      markOwn(this.#server)
      // For example, out of descriptors for a caller: the program must not end for that.
      this.#server.on('error', error => log('%s', error.message))
      // `exclusive`: a cluster worker answers for its own endpoints.
      this.#server.listen({ host: address, port: 0, exclusive: true })
      this.#server.unref()
      this.#listening = once(this.#server, 'listening')
    }
    const server = this.#server
    try {
      await this.#listening
      const { address: own, port } = server.address() as net.AddressInfo
      return { host: own, port }
    } catch (error) {
      log('other hosts cannot ask at %s: %s', address, (error as Error).message)
      this.close(endpoint)
      return undefined
    }
  }

  close(endpoint: string): void {
    this.#hosts.delete(endpoint)
    if (this.#hosts.size > 0) return
    this.#server?.close()
    this.#server = undefined
  }
}

/** One per thread. */
export const remoteRendezvous = new RemoteRendezvous()

/** Opens the endpoint to RDMA hosts if one of its drivers reaches them; resolves to the address. */
export async function openToOthers(
  drivers: readonly Driver[],
  endpoint: string,
  host: RendezvousHost,
): Promise<TcpAddress | undefined> {
  if (drivers.every(({ reach, needsAddress }) => reach !== 'network' || needsAddress)) return undefined
  return await remoteRendezvous.open(endpoint, host)
}
