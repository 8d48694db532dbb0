/**
 * The bootstrap of a listener for other network namespaces of this host: a socket in the rendezvous folder, which sends
 * the greeting and reads the HELLO on one connection. The kernel says who calls.
 */
import net from 'node:net'
import {
  CallersByUser,
  hasName,
  markOwn,
  type NameState,
  openLog,
  type Publication,
  reasonAgainstFolder,
  refuseDescriptors,
  rendezvousFolder,
} from '../../nic/index.ts'
import { publishStep } from '../host/steps.ts'
import { allowsDriver } from '../policy/own-policy.ts'
import { encodeIntroduction, GREETING_MAGIC, NO_ID, REFUSAL, VERSION } from './bootstrap-layout.ts'
import type { BootstrapHost, BootstrapPlace } from './bootstrap-server.ts'
import { HelloCallers } from './hello-callers.ts'
import { type Kernel, realKernel } from './kernel.ts'
import { isForFolder, namesOf, type Place, sharedAddresses } from './neighbours.ts'

const log = openLog('fastsockets:rendezvous')

/** Callers that have not finished the handshake, as at a door. */
const CALLERS_MAX = 256
const OTHER_CALLERS_MAX = 64

/** A listener that may be published. */
export interface FolderPlace extends Pick<BootstrapPlace, 'id' | 'isRequired'>, Place {
  /** Other threads accept connections of the same listener: the folder leads to each of them by a slot. */
  readonly isShared: boolean
  /** Clients that know the listener by one of its addresses find it there no more. */
  readonly handleGone?: () => void
}

/** Looks at the folder that a listener leaves out after a failure: twice as many each time, at most these. */
const LEFT_OUT_MAX = 32

export class FolderServer {
  /** The addresses under which the listener is published. */
  addresses: readonly string[] = []
  readonly #place: FolderPlace
  readonly #kernel: Kernel
  readonly #greeting: Buffer
  readonly #callers: HelloCallers
  readonly #byUser = new CallersByUser({ own: CALLERS_MAX, other: OTHER_CALLERS_MAX, others: CALLERS_MAX })
  readonly #endRefreshing: () => void
  #publication: Publication | undefined
  /** Names that this listener has asked for: another listener that has one of them since then keeps it. */
  readonly #asked = new Set<string>()
  #leftOut = 0
  #leaveOut = 0

  /** Undefined if the listener cannot be reached from other namespaces, or the program is to use no folder. */
  static open(place: FolderPlace, host: BootstrapHost): FolderServer | undefined {
    if (!allowsDriver('shm') || !isForFolder(place) || rendezvousFolder() === undefined) return undefined
    return new FolderServer(place, host)
  }

  private constructor(place: FolderPlace, host: BootstrapHost) {
    this.#place = place
    this.#kernel = host.kernel ?? realKernel
    this.#callers = new HelloCallers(host, true)
    this.#greeting = encodeIntroduction(GREETING_MAGIC, {
      ...host.introduce(place.port),
      isShared: place.isShared,
      isRequired: place.isRequired,
      // A number of this pid namespace means nothing to the peer.
      pid: 0,
      door: NO_ID,
      listenerId: place.id,
    })
    this.#publish(this.#names())
    this.#endRefreshing = this.#kernel.refreshRegularly(() => this.#refresh())
  }

  /**
   * Publishes anew what the folder has lost (it was emptied, deleted and made again, or full), and when addresses of the
   * namespace have come or gone. Publishes late if the folder is mounted or made after the listener: while there is
   * no folder, each look costs two system calls, and none is left out.
   */
  #refresh(): void {
    const isUsable = reasonAgainstFolder(true) === undefined
    if (!isUsable && this.#publication === undefined) return
    if (isUsable && this.#leaveOut-- > 0) return
    const names = this.#names()
    const wanted = names.filter(name => !this.#asked.has(name) || this.#stateOf(name) !== 'other')
    const addresses = this.#currentAddresses()
    const isWhole =
      this.addresses.every(one => addresses.includes(one)) &&
      wanted.every(name => this.#stateOf(name) === 'own') &&
      this.#isPublished()
    if (isWhole || this.#publish(wanted) || !isUsable) this.#leftOut = 0
    else this.#leftOut = Math.min(this.#leftOut * 2 + 1, LEFT_OUT_MAX)
    this.#leaveOut = this.#leftOut
  }

  /** False if the folder has lost a name, or no name leads to a shared listener: another one may have taken its slot. */
  #isPublished(): boolean {
    const states = this.#publication?.names.map(name => this.#stateOf(name)) ?? []
    return !states.includes('missing') && (this.#sharedNames().length === 0 || states.includes('own'))
  }

  /** Names that several listeners share: each of them publishes a slot (NAME.SLOT), and one of them NAME itself. Empty if this listener shares its port with none. */
  #sharedNames(): readonly string[] {
    return this.#place.isShared ? this.#names() : []
  }

  #names(): readonly string[] {
    return namesOf(this.#place, this.#kernel)
  }

  #currentAddresses(): readonly string[] {
    return sharedAddresses(this.#place, this.#kernel)
  }

  #stateOf(name: string): NameState {
    return this.#publication?.stateOf(name) ?? (hasName(name) ? 'other' : 'missing')
  }

  /** False if nothing can be published. The new socket has the names before the old one closes. */
  #publish(names: readonly string[]): boolean {
    const addresses = this.#currentAddresses()
    if (!this.addresses.every(one => addresses.includes(one))) this.#place.handleGone?.()
    this.addresses = addresses
    const shared = this.#sharedNames()
    if (names.length === 0 && shared.length === 0) return this.#withdraw()
    const against = reasonAgainstFolder(true)
    if (against !== undefined) return this.#logFailure(against)
    const server = new net.Server()
    markOwn(server)
    server.on('connection', caller => this.#greet(caller))
    const publication = this.#kernel.publish(server, names, shared)
    for (const name of names) this.#asked.add(name)
    if (typeof publication === 'string') return this.#logFailure(publication)
    this.#publication?.close()
    this.#publication = publication
    return true
  }

  #logFailure(reason: string): false {
    log('%s port %d: %s', this.#place.address, this.#place.port, reason)
    return false
  }

  /** The listener has no address by which other namespaces may reach it now, or others have all of its names. */
  #withdraw(): true {
    this.#publication?.close()
    this.#publication = undefined
    return true
  }

  #greet(caller: net.Socket): void {
    publishStep('server called')
    markOwn(caller)
    caller.on('error', error => log('caller: %s', error.message))
    caller.unref()
    refuseDescriptors(caller)
    const uid = this.#kernel.userOf(caller)
    if (uid === undefined || !this.#kernel.allowsUser(uid) || !this.#byUser.enter(uid))
      return void caller.destroy()
    caller.write(this.#greeting)
    publishStep('server greeted')
    this.#callers.serve(
      caller,
      uid,
      hello => {
        if (hello.version !== VERSION) return REFUSAL.VERSION
        return hello.listenerId.equals(this.#place.id) ? this.#greeting : REFUSAL.NOT_LISTENING
      },
      () => this.#byUser.leave(uid),
    )
  }

  close(): void {
    this.#endRefreshing()
    this.#publication?.close()
    this.#callers.close()
  }
}
