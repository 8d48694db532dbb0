/**
 * What connecting takes from the kernel and from the policy: time, sockets, users, addresses. A thread has the real ones; the
 * simulator makes them for each simulated process.
 */
import net, { type Server, type Socket } from 'node:net'
import { type Clock, realClock } from '../../nic/clock.ts'
import {
  isListenerOf,
  isOwnUser,
  markOwn,
  openLog,
  type Publication,
  publishSocket,
  randomBytes,
  refreshRegularly,
  refuseDescriptors,
  SLOTS,
  sourceAddressTo,
  userOfPeer,
} from '../../nic/index.ts'
import { reachableOwnAddress } from '../host/addresses.ts'
import { allowsUser } from '../policy/own-policy.ts'

const log = openLog('fastsockets:bootstrap')

/** Of doors, and of a thread's endpoint. */
const ID_SIZE = 16

let turn = Math.floor(Math.random() * SLOTS)

export interface Kernel {
  readonly clock: Clock
  /** ID_SIZE random bytes. */
  newId(): Buffer
  /** The address of this network namespace that a connect to `address` reaches; undefined if it leads elsewhere. */
  reachableOwnAddress(address: string): string | undefined
  /** The address from which the kernel would call `address`; undefined if no route leads there. */
  sourceAddressTo(address: string): string | undefined
  /** The user at the other end of a unix connection; undefined if the peer has already closed it. */
  userOf(connection: Socket): number | undefined
  /** Whether connections with processes of this user may be fast. */
  allowsUser(uid: number): boolean
  /** Whether it is the user of this process. */
  isOwnUser(uid: number): boolean
  /** Whether this user may serve the clients of a TCP listener. */
  mayServe(uid: number, address: string, port: number): boolean
  /** A server at a unix path; undefined if it cannot listen, for example because the path is taken. */
  listenAt(path: string): Server | undefined
  /** `publishSocket`: in the rendezvous folder. */
  publish(server: Server, names: readonly string[], shared: readonly string[]): Publication | string
  /** Of listeners that threads share, the one to call first: another one at each call, and elsewhere in each process. */
  nextTurn(): number
  /** Calls `refresh` from time to time, until the returned function is called. */
  refreshRegularly(refresh: () => void): () => void
}

export const realKernel: Kernel = {
  clock: realClock,
  newId: () => randomBytes(ID_SIZE),
  reachableOwnAddress,
  sourceAddressTo,
  userOf: connection => {
    try {
      return userOfPeer(connection)
    } catch {
      return undefined
    }
  },
  allowsUser,
  isOwnUser,
  // Ours may; another one only if the kernel's listener is that user's.
  mayServe: (uid, address, port) => isOwnUser(uid) || isListenerOf(uid, address, port),
  listenAt: path => {
    const server = new net.Server()
    markOwn(server)
    server.on('error', error => log('%s: %s', path.slice(1), error.message))
    // `exclusive`: in a cluster worker the primary would listen in its place.
    server.listen({ path, exclusive: true })
    server.unref()
    refuseDescriptors(server)
    return server.listening ? server : undefined
  },
  publish: publishSocket,
  nextTurn: () => turn++,
  refreshRegularly,
}
