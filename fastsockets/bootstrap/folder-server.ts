/**
 * The bootstrap of a listener for other network namespaces of this host: a socket in the rendezvous folder, which sends
 * the greeting and reads the HELLO on one connection. The kernel says who calls.
 */
import net from 'node:net'
import {
  CallersByUser,
  markOwn,
  openLog,
  type Publication,
  publishSocket,
  refuseDescriptors,
} from '../../nic/index.ts'
import { publishStep } from '../host/steps.ts'
import { allowsDriver, allowsUser } from '../policy/own-policy.ts'
import { encodeIntroduction, GREETING_MAGIC, NO_ID, REFUSAL, VERSION } from './bootstrap-layout.ts'
import type { BootstrapHost, BootstrapPlace } from './bootstrap-server.ts'
import { uidOf } from './door.ts'
import { HelloCallers } from './hello-callers.ts'
import { namesOf, sharedAddresses } from './neighbours.ts'

const log = openLog('fastsockets:rendezvous')

/** Callers that have not finished the handshake, as at a door. */
const CALLERS_MAX = 256
const OTHER_CALLERS_MAX = 64

export class FolderServer {
  /** The addresses under which the listener is published. */
  readonly addresses: readonly string[]
  readonly #publication: Publication
  readonly #callers: HelloCallers

  /** Undefined if the listener cannot be reached from other namespaces, or there is no folder. */
  static open(place: BootstrapPlace, host: BootstrapHost): FolderServer | undefined {
    const names = namesOf(place)
    if (names.length === 0 || !allowsDriver('shm')) return undefined
    const callers = new HelloCallers(host, true)
    const greeting = encodeIntroduction(GREETING_MAGIC, {
      ...host.introduce(place.port),
      // A number of this pid namespace means nothing to the peer.
      pid: 0,
      door: NO_ID,
      listenerId: place.id,
    })
    const byUser = new CallersByUser({ own: CALLERS_MAX, other: OTHER_CALLERS_MAX, others: CALLERS_MAX })
    const server = new net.Server()
    markOwn(server)
    server.on('connection', caller => greet(caller, place.id, greeting, callers, byUser))
    const publication = publishSocket(server, names)
    if (typeof publication !== 'string') return new FolderServer(publication, callers, sharedAddresses(place))
    log('%s port %d: %s', place.address, place.port, publication)
    return undefined
  }

  private constructor(publication: Publication, callers: HelloCallers, addresses: readonly string[]) {
    this.#publication = publication
    this.#callers = callers
    this.addresses = addresses
  }

  close(): void {
    this.#publication.close()
    this.#callers.close()
  }
}

function greet(
  caller: net.Socket,
  listenerId: Buffer,
  greeting: Buffer,
  callers: HelloCallers,
  byUser: CallersByUser,
): void {
  publishStep('server called')
  markOwn(caller)
  caller.on('error', error => log('caller: %s', error.message))
  caller.unref()
  refuseDescriptors(caller)
  const uid = uidOf(caller)
  if (uid === undefined || !allowsUser(uid) || !byUser.enter(uid)) return void caller.destroy()
  caller.write(greeting)
  publishStep('server greeted')
  callers.serve(
    caller,
    uid,
    hello => {
      if (hello.version !== VERSION) return REFUSAL.VERSION
      return hello.listenerId.equals(listenerId) ? greeting : REFUSAL.NOT_LISTENING
    },
    () => byUser.leave(uid),
  )
}
