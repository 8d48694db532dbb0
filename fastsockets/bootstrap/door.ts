/**
 * The abstract unix socket at which a thread hears the HELLOs of its own host. A GREETING names it, and the client asks the
 * kernel who listens there (SO_PEERCRED) before it says a word: so a stranger who holds a hashed port, or relays what is said
 * there, learns nothing and can only send the client to its own door, which is refused.
 */
import net from 'node:net'
import {
  CallersByUser,
  markOwn,
  openLog,
  randomBytes,
  refuseDescriptors,
  userOfPeer,
} from '../../nic/index.ts'
import { DOOR_SIZE, REFUSAL, VERSION } from './bootstrap-layout.ts'
import { HelloCallers, type HelloHost } from './hello-callers.ts'

const log = openLog('fastsockets:bootstrap')

/** Callers of our own user, who have not finished the handshake; of all others together; and of each other one. */
const CALLERS_MAX = 256
const OTHER_CALLERS_MAX = 64
/** Of full length: Node 20 fills a shorter abstract address up with zeros when it listens, later ones do not. */
const DOOR_NAME_SIZE = 108

/** What Node calls the socket of a door, from the 16 bytes in a GREETING. */
export function doorPath(door: Buffer): string {
  return `\0fastsockets-door-${door.toString('hex')}`.padEnd(DOOR_NAME_SIZE, '-')
}

export class Door {
  readonly name: Buffer
  readonly #server: net.Server
  readonly #helloCallers: HelloCallers
  readonly #callersByUser = new CallersByUser({
    own: CALLERS_MAX,
    other: OTHER_CALLERS_MAX,
    others: CALLERS_MAX,
  })
  /** What was said at each listener's hashed port or shadow, by its id: a caller must have heard one of them. */
  readonly #greetings = new Map<string, Buffer>()

  /** Undefined if there can be none, for lack of descriptors perhaps. */
  static open(host: HelloHost): Door | undefined {
    const name = randomBytes(DOOR_SIZE)
    const server = new net.Server()
    markOwn(server)
    server.on('error', error => log('door: %s', error.message))
    // Exclusive: in a cluster worker the primary would listen in its place.
    server.listen({ path: doorPath(name), exclusive: true })
    server.unref()
    refuseDescriptors(server)
    return server.listening ? new Door(name, server, host) : undefined
  }

  private constructor(name: Buffer, server: net.Server, host: HelloHost) {
    this.name = name
    this.#server = server
    this.#helloCallers = new HelloCallers(host)
    server.on('connection', caller => this.#take(caller))
  }

  get isClosed(): boolean {
    return !this.#server.listening
  }

  /** From now on callers come in who have heard this greeting. */
  admit(listenerId: Buffer, greeting: Buffer): void {
    this.#greetings.set(listenerId.toString('hex'), greeting)
  }

  /** The last one closes the door. */
  dismiss(listenerId: Buffer): void {
    this.#greetings.delete(listenerId.toString('hex'))
    if (this.#greetings.size > 0) return
    this.#server.close()
    this.#helloCallers.close()
  }

  #take(caller: net.Socket): void {
    markOwn(caller)
    caller.on('error', error => log('caller: %s', error.message))
    caller.unref()
    const uid = uidOf(caller)
    if (uid === undefined || !this.#callersByUser.enter(uid)) return void caller.destroy()
    this.#helloCallers.take(
      caller,
      uid,
      hello => {
        // Of another version only the first bytes mean the same.
        if (hello.version !== VERSION) return REFUSAL.VERSION
        return this.#greetings.get(hello.listenerId.toString('hex')) ?? REFUSAL.NOT_LISTENING
      },
      () => this.#callersByUser.leave(uid),
    )
  }
}

/** Undefined if it has gone already. */
export function uidOf(connection: net.Socket): number | undefined {
  try {
    return userOfPeer(connection)
  } catch {
    return undefined
  }
}
