/**
 * Where senders of this network namespace find the receiving socket of a pair: an abstract unix name, made of the UDP socket's
 * address and port, with the bootstrap of a listener on a unix path (docs/protocol.md).
 */
import { randomBytes } from '../../nic/index.ts'
import { LISTENER_ID_SIZE } from '../bootstrap/bootstrap-layout.ts'
import { type BootstrapHost, BootstrapServer } from '../bootstrap/bootstrap-server.ts'
import { UNIX } from '../host/unix-paths.ts'

const NOTHING_TO_AVOID: ReadonlySet<number> = new Set()

export function doorKey(address: string, port: number): string {
  return `udp-${address}-${port}`
}

/** The keys under which a receiver at `address` may have its door: its own, or that of a socket on all addresses. */
export function doorKeysTo(address: string, port: number): string[] {
  const wildcards = address.includes(':') ? ['::'] : ['0.0.0.0', '::']
  return [address, ...wildcards].map(one => doorKey(one, port))
}

export class DatagramDoor {
  readonly #bootstrap: BootstrapServer

  /** Undefined if it cannot listen. */
  static open(address: string, port: number, host: BootstrapHost): DatagramDoor | undefined {
    const place = {
      id: randomBytes(LISTENER_ID_SIZE),
      address: doorKey(address, port),
      port,
      family: UNIX,
      isRequired: false,
      ipv6Only: false,
      isPortShared: false,
    } as const
    const bootstrap = BootstrapServer.open(place, host, NOTHING_TO_AVOID)
    return bootstrap && new DatagramDoor(bootstrap)
  }

  private constructor(bootstrap: BootstrapServer) {
    this.#bootstrap = bootstrap
  }

  close(): void {
    this.#bootstrap.close()
  }
}
