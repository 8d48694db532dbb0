import { hostIdentity, randomBytes } from '../../nic/index.ts'
import { decodeTcpAddress, encodeTcpAddress, type TcpAddress } from './tcp-address.ts'

/**
 * Global name of an endpoint: the host (and network namespace), the thread whose rendezvous socket answers there,
 * and the endpoint in that thread; if it listens for callers of other hosts, also the address. Other code treats it as
 * opaque.
 *
 *   am1-HOST-THREAD-ENDPOINT                       32, 32 and 16 hexadecimal digits
 *   am1-HOST-THREAD-ENDPOINT@tcp:ADDRESS:PORT
 */
const NAME = /^am1-([0-9a-f]{32})-([0-9a-f]{32})-([0-9a-f]{16})(?:@(tcp:.{1,64}))?$/

/** The full length of `sun_path`: some versions of Node add zeros to a shorter abstract name, others do not. */
const PATH_SIZE = 108

export interface EndpointName {
  readonly host: string
  readonly thread: string
  readonly endpoint: string
  readonly address?: TcpAddress
}

/** Random identity of this thread, among all threads of all hosts. */
export const thisThread = randomBytes(16).toString('hex')

export function thisHost(): string {
  return hostIdentity().toString('hex')
}

export function newEndpointName(address?: TcpAddress): EndpointName {
  const name = { host: thisHost(), thread: thisThread, endpoint: randomBytes(8).toString('hex') }
  return address === undefined ? name : { ...name, address }
}

export function encodeName(name: EndpointName): string {
  const { address } = name
  return address === undefined ? identityOf(name) : `${identityOf(name)}@${encodeTcpAddress(address)}`
}

/** The name without the address, of which an endpoint may have several. */
export function identityOf({ host, thread, endpoint }: EndpointName): string {
  return `am1-${host}-${thread}-${endpoint}`
}

/** Undefined if it has another form: then it may be a published name. */
export function decodeName(text: string): EndpointName | undefined {
  const [, host, thread, endpoint, place] = NAME.exec(text) ?? []
  if (host === undefined || thread === undefined || endpoint === undefined) return undefined
  if (place === undefined) return { host, thread, endpoint }
  const address = decodeTcpAddress(place)
  return address && { host, thread, endpoint, address }
}

/** The abstract unix socket on which a thread answers for its endpoints. */
export function rendezvousPath(thread: string): string {
  return `\0fastsockets-am-${thread}`.padEnd(PATH_SIZE, '-')
}
