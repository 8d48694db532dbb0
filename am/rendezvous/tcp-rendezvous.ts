/**
 * Addresses at which this thread's endpoints listen for callers of other hosts. Endpoints that name the same address
 * share its port. Callers know the shared key, or belong to this host and user (nic/tcp).
 */
import { openTcpPort, type TcpPort } from '../../nic/index.ts'
import { type EndpointName, encodeName } from './endpoint-name.ts'
import { Reception, type RendezvousHost } from './reception.ts'
import { encodeTcpAddress, type TcpAddress } from './tcp-address.ts'

/** Most authenticated callers that are not answered yet: memory may be promised to each. */
const CALLERS_MAX = 1024

interface Place {
  readonly hosts: Map<string, { readonly name: EndpointName; readonly host: RendezvousHost }>
  readonly port: Promise<TcpPort>
  /** Endpoints that use the place or are about to. */
  users: number
}

const places = new Map<string, Place>()

/** An endpoint's use of a place. */
export interface Listening {
  /** Undefined if no network device has one. */
  readonly address: TcpAddress | undefined
  /** From now on callers reach the endpoint. */
  serve(name: EndpointName, host: RendezvousHost): void
  close(): void
}

/** Listens, or shares the port that listens there already. */
export async function listenAt(listen: TcpAddress): Promise<Listening> {
  const key = encodeTcpAddress(listen)
  const place = places.get(key) ?? openPlace(listen)
  places.set(key, place)
  place.users++
  let endpoint: string | undefined
  const close = (): void => {
    if (endpoint !== undefined) place.hosts.delete(endpoint)
    if (--place.users > 0) return
    if (places.get(key) === place) places.delete(key)
    place.port.then(
      port => port.close(),
      () => {},
    )
  }
  try {
    const { address } = await place.port
    return {
      address,
      serve(name, host) {
        endpoint = name.endpoint
        place.hosts.set(endpoint, { name, host })
      },
      close,
    }
  } catch (error) {
    close()
    throw error
  }
}

function openPlace(listen: TcpAddress): Place {
  const hosts: Place['hosts'] = new Map()
  /** A caller that names the address only means the endpoint that has listened there for the longest time. */
  const first = (): string | undefined => {
    const [entry] = hosts.values()
    return entry && encodeName(entry.name)
  }
  const reception = new Reception(CALLERS_MAX, 'tcp', endpoint => hosts.get(endpoint)?.host, first)
  return { hosts, port: openTcpPort(listen, socket => reception.meet(socket)), users: 0 }
}
