/**
 * The abstract unix socket at which a thread reads the HELLOs of its own host. A GREETING names it, and the client asks
 * the kernel which user listens there (SO_PEERCRED) before it sends a byte. So a stranger that holds a hashed port, or
 * relays its bytes, learns nothing. It can only send the client to a door of its own, which the client refuses.
 */
import type { Server, Socket } from 'node:net'
import { CallersByUser, markOwn, openLog } from '../../nic/index.ts'
import { REFUSAL, VERSION } from './bootstrap-layout.ts'
import { HelloCallers, type HelloHost } from './hello-callers.ts'
import { type Kernel, realKernel } from './kernel.ts'

const log = openLog('fastsockets:bootstrap')

/**
 * Callers that have not finished the handshake: CALLERS_MAX of our own user, as many of all others together, and
 * OTHER_CALLERS_MAX of any one of them.
 */
const CALLERS_MAX = 256
const OTHER_CALLERS_MAX = 64
/** The full length: Node 20 pads a shorter abstract address with zeros when it listens; later versions do not. */
const DOOR_NAME_SIZE = 108

/** The path by which Node names the socket of a door; `door`: the 16 bytes in a GREETING. */
export function doorPath(door: Buffer): string {
  return `\0fastsockets-door-${door.toString('hex')}`.padEnd(DOOR_NAME_SIZE, '-')
}

export class Door {
  readonly name: Buffer
  readonly #server: Server
  readonly #userOf: Kernel['userOf']
  readonly #helloCallers: HelloCallers
  readonly #callersByUser = new CallersByUser({
    own: CALLERS_MAX,
    other: OTHER_CALLERS_MAX,
    others: CALLERS_MAX,
  })
  /** The greeting of each hashed port or shadow, by its listener's id. A caller must show the id of one of them. */
  readonly #greetings = new Map<string, Buffer>()

  /** Undefined if the door cannot listen, for example for lack of descriptors. */
  static open(host: HelloHost): Door | undefined {
    const { kernel = realKernel } = host
    const name = kernel.newId()
    const server = kernel.listenAt(doorPath(name))
    return server && new Door(name, server, host)
  }

  private constructor(name: Buffer, server: Server, host: HelloHost) {
    this.name = name
    this.#server = server
    this.#userOf = (host.kernel ?? realKernel).userOf
    this.#helloCallers = new HelloCallers(host)
    server.on('connection', caller => this.#accept(caller))
  }

  get isClosed(): boolean {
    return !this.#server.listening
  }

  /** Accepts callers that show this listener's id. */
  admit(listenerId: Buffer, greeting: Buffer): void {
    this.#greetings.set(listenerId.toString('hex'), greeting)
  }

  /** Refuses them again. Without any listener the door closes. */
  dismiss(listenerId: Buffer): void {
    this.#greetings.delete(listenerId.toString('hex'))
    if (this.#greetings.size > 0) return
    this.#server.close()
    this.#helloCallers.close()
  }

  #accept(caller: Socket): void {
    markOwn(caller)
    caller.on('error', error => log('caller: %s', error.message))
    caller.unref()
    const uid = this.#userOf(caller)
    if (uid === undefined || !this.#callersByUser.enter(uid)) return void caller.destroy()
    this.#helloCallers.serve(
      caller,
      uid,
      hello => {
        // In another version only the first 12 bytes mean the same.
        if (hello.version !== VERSION) return REFUSAL.VERSION
        return this.#greetings.get(hello.listenerId.toString('hex')) ?? REFUSAL.NOT_LISTENING
      },
      () => this.#callersByUser.leave(uid),
    )
  }
}
