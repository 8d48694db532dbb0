/**
 * Where senders find the receiving socket of a pair: those of this network namespace at an abstract unix name, made of the UDP socket's
 * address and port, with the bootstrap of a listener on a unix path (docs/protocol.md); those of other containers in the rendezvous
 * folder, if there is one.
 */
import { randomBytes } from '../../nic/index.ts'
import { LISTENER_ID_SIZE } from '../bootstrap/bootstrap-layout.ts'
import { type BootstrapHost, BootstrapServer } from '../bootstrap/bootstrap-server.ts'
import { FolderServer } from '../bootstrap/folder-server.ts'
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
  readonly #inFolder: FolderServer | undefined

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
    if (bootstrap === undefined) return undefined
    const family = address.includes(':') ? 6 : 4
    // The kernel does not say whether a socket on `::` takes IPv4: a name under an IPv4 address costs nothing.
    const shared = { ...place, address, family, isShared: false, protocol: 'udp' } as const
    return new DatagramDoor(bootstrap, FolderServer.open(shared, host))
  }

  private constructor(bootstrap: BootstrapServer, inFolder: FolderServer | undefined) {
    this.#bootstrap = bootstrap
    this.#inFolder = inFolder
  }

  close(): void {
    this.#bootstrap.close()
    this.#inFolder?.close()
  }
}
