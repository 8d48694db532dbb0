import { hostIdentity, randomBytes } from '../../nic/index.ts'

/**
 * Global name of an endpoint: the host (and network namespace), the thread whose rendezvous socket answers there,
 * and the endpoint in that thread. Other code treats it as opaque.
 *
 *   am1-HOST-THREAD-ENDPOINT     32, 32 and 16 hexadecimal digits
 */
const NAME = /^am1-([0-9a-f]{32})-([0-9a-f]{32})-([0-9a-f]{16})$/

/** The full length of `sun_path`: some versions of Node add zeros to a shorter abstract name, others do not. */
const PATH_SIZE = 108

export interface EndpointName {
  readonly host: string
  readonly thread: string
  readonly endpoint: string
}

/** Random identity of this thread, among all threads of all hosts. */
export const thisThread = randomBytes(16).toString('hex')

export function thisHost(): string {
  return hostIdentity().toString('hex')
}

export function newEndpointName(): EndpointName {
  return { host: thisHost(), thread: thisThread, endpoint: randomBytes(8).toString('hex') }
}

export function encodeName(name: EndpointName): string {
  return `am1-${name.host}-${name.thread}-${name.endpoint}`
}

/** Undefined if it has another form: then it may be a published name. */
export function decodeName(text: string): EndpointName | undefined {
  const [, host, thread, endpoint] = NAME.exec(text) ?? []
  return host === undefined || thread === undefined || endpoint === undefined
    ? undefined
    : { host, thread, endpoint }
}

/** The abstract unix socket on which a thread answers for its endpoints. */
export function rendezvousPath(thread: string): string {
  return `\0fastsockets-am-${thread}`.padEnd(PATH_SIZE, '-')
}
