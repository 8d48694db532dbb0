/**
 * The listener on a hashed port: sends the greeting (bootstrap-layout.ts). Clients of this host then send HELLO at the
 * door that the greeting names; clients of other hosts send it here. Each fast listener of the program has one, bound
 * to the same address.
 */
import net, { type Server, type Socket } from 'node:net'
import { CallersByUser, makeHidden, markOwn, openLog } from '../../nic/index.ts'
import { withoutMapping } from '../host/addresses.ts'
import { type Binding, createServerHandle } from '../host/listener-binding.ts'
import type { ServerInternals, TcpHandle } from '../host/node-internals.ts'
import { publishStep } from '../host/steps.ts'
import { type Family, isFileKey, shadowName, UNIX } from '../host/unix-paths.ts'
import {
  EARLY_SIZE,
  encodeIntroduction,
  GREETING_MAGIC,
  type Introduction,
  NO_ID,
} from './bootstrap-layout.ts'
import type { Door } from './door.ts'
import { takeEarlyPort } from './early-ports.ts'
import { CANDIDATE_COUNT, hashedPorts } from './hashed-port.ts'
import { HelloCallers, type HelloHost } from './hello-callers.ts'
import { type Kernel, realKernel } from './kernel.ts'
import { listenThroughPrimary, type SharedPlace } from './primary-listener.ts'
import { mayAskUs, mayReachHosts } from './remote-hosts.ts'

const log = openLog('fastsockets:bootstrap')

/** Clients of other hosts that have not finished the handshake; the server hangs up on more. */
const CALLERS_MAX = 256
/** The same limit for one address. */
const ADDRESS_CALLERS_MAX = 32

/** How callers reach a bootstrap, and which of other hosts may. */
export interface BootstrapNetwork {
  /** Undefined if the port is taken. */
  listen(place: BootstrapPlace, port: number): Server | undefined
  mayAsk(caller: Socket, listenerPort: number): boolean
}

export interface BootstrapHost extends HelloHost {
  /** Of the simulator; by default the kernel's. */
  readonly network?: BootstrapNetwork | undefined
  introduce(port: number): Introduction
  /** Where clients of this host send HELLO; undefined if no driver reaches them or the door cannot listen. */
  openDoor(): Door | undefined
}

/** The place and binding of a listener that only this process has: its bootstrap is bound in the same way. */
export interface BootstrapPlace extends Binding {
  /** 16 random bytes. */
  readonly id: Buffer
  readonly port: number
  /** On a unix path: its key. */
  readonly address: string
  readonly family: Family
  /** The policy requires its connections to be fast. */
  readonly isRequired: boolean
}

/** The listener for which the bootstrap sends greetings, shared or not. */
type Greeted = Pick<BootstrapPlace, 'id' | 'port' | 'address' | 'family' | 'isRequired'>

export class BootstrapServer {
  readonly port: number
  /** Clients compute the port themselves; otherwise only the name service knows it. */
  readonly isHashed: boolean
  readonly #server: Server
  readonly #place: Greeted
  readonly #door: Door | undefined
  readonly #mayAsk: BootstrapNetwork['mayAsk']
  readonly #kernel: Kernel
  readonly #greeting: Buffer
  readonly #callers: HelloCallers
  readonly #callersByAddress = new CallersByUser({
    own: 0,
    other: ADDRESS_CALLERS_MAX,
    others: CALLERS_MAX,
  })

  /**
   * Listens on the first free candidate. If all are taken, listens on any free port, which only the name service can
   * tell clients; a shared port has no such last resort. Undefined if no port is to be had.
   */
  static open(
    place: BootstrapPlace,
    host: BootstrapHost,
    avoid: ReadonlySet<number>,
  ): BootstrapServer | undefined {
    const { port: listenerPort, address, family, isPortShared } = place
    if (family === UNIX) return BootstrapServer.#openUnix(place, host)
    const { network } = host
    // Clients may wait there: an earlier candidate that is free by now is none for them.
    const early = network === undefined ? takeEarlyPort(address, listenerPort) : undefined
    const candidates = hashedPorts(listenerPort).filter(port => !avoid.has(port))
    if (!isPortShared) candidates.push(0)
    for (const port of early === undefined ? candidates : [early.port]) {
      const server =
        network === undefined ? listenOnPort(place, port, early?.handle) : network.listen(place, port)
      if (server === undefined) continue
      const bootstrap = new BootstrapServer(server, port !== 0, place, host, isPortShared)
      early?.greetBy(caller => bootstrap.#greetOn(caller))
      return bootstrap
    }
    log('no port is free for the bootstrap of %s port %d', address, listenerPort)
    return undefined
  }

  static #openUnix(place: Greeted, host: BootstrapHost): BootstrapServer | undefined {
    const { kernel = realKernel } = host
    for (let candidate = 0; candidate < CANDIDATE_COUNT; candidate++) {
      const server = kernel.listenAt(shadowName(place.address, candidate))
      if (server !== undefined) return new BootstrapServer(server, true, place, host)
    }
    return undefined
  }

  /**
   * For a listener that the workers of a cluster share: opens a bootstrap that they share, too. Calls `onOpen` when the
   * primary has answered.
   */
  static openShared(
    place: SharedPlace & Greeted,
    host: BootstrapHost,
    avoid: ReadonlySet<number>,
    onOpen: (bootstrap: BootstrapServer | undefined) => void,
  ): void {
    listenThroughPrimary(place, avoid, server => {
      if (server === undefined) {
        log('the cluster has no bootstrap for %s port %d', place.address, place.port)
        return onOpen(undefined)
      }
      const bootstrap = new BootstrapServer(server, true, place, host, true)
      bootstrap.#acceptCallers(server)
      onOpen(bootstrap)
    })
  }

  private constructor(
    server: Server,
    isHashed: boolean,
    place: Greeted,
    host: BootstrapHost,
    isShared = false,
  ) {
    const address = server.address()
    // 0 on a unix path.
    const port = typeof address === 'object' ? (address?.port ?? 0) : 0
    this.port = port
    this.isHashed = isHashed
    this.#server = server
    this.#place = place
    this.#mayAsk = host.network?.mayAsk ?? mayAsk
    this.#kernel = host.kernel ?? realKernel
    this.#door = host.openDoor()
    const { id: listenerId } = place
    const introduction = {
      ...host.introduce(place.port),
      isShared,
      isRequired: place.isRequired,
      door: this.#door?.name ?? NO_ID,
      listenerId,
    }
    this.#greeting = encodeIntroduction(GREETING_MAGIC, introduction)
    this.#door?.admit(listenerId, this.#greeting)
    this.#callers = new HelloCallers(host)
    server.on('connection', caller => this.#greet(caller))
    log('port %d %s %d', place.port, isHashed ? 'is hashed to' : 'has its bootstrap at', port)
  }

  close(): void {
    this.#server.close()
    this.#door?.dismiss(this.#place.id)
    this.#callers.close()
  }

  /**
   * Accepts clients past net.Server, which would count them: when a worker disconnects, Node waits until all its
   * servers have lost their connections, and the lifeline of a peer on another host lasts as long as that peer.
   */
  #acceptCallers(server: ServerInternals): void {
    const handle = server._handle as TcpHandle
    handle.onconnection = (status, accepted) => {
      if (status !== 0) return
      this.#greet(new net.Socket({ handle: accepted, readable: true, writable: true } as never))
    }
  }

  /** A caller of this host that has the first bytes of the greeting. */
  #greetOn(caller: Socket): void {
    caller.end(this.#greeting.subarray(EARLY_SIZE), () => caller.destroy())
  }

  #greet(caller: Socket): void {
    publishStep('server called')
    markOwn(caller)
    caller.on('error', error => log('caller: %s', error.message))
    caller.unref()
    const { port, address, family } = this.#place
    const isHere =
      family === UNIX ? mayKnow(address, caller, this.#kernel) : this.#isOwnAddress(caller.remoteAddress)
    const { remoteAddress: host = '' } = caller
    // A client of another host may have an address that is ours as well: its identity differs, and it sends HELLO here.
    const mayStay =
      family !== UNIX &&
      (!isHere || mayReachHosts()) &&
      this.#mayAsk(caller, port) &&
      this.#callersByAddress.enter(host)
    if (!mayStay && isHere) {
      // The client sends HELLO at the door: after the greeting it needs no state here.
      caller.end(this.#greeting, () => caller.destroy())
      return publishStep('server greeted')
    }
    // The greeting names our user, process and host: on the network only hosts that may ask receive it.
    if (!mayStay) return void caller.destroy()
    caller.write(this.#greeting)
    this.#callers.serve(
      caller,
      undefined,
      () => this.#greeting,
      () => this.#callersByAddress.leave(host),
    )
  }

  #isOwnAddress(address: string | undefined): boolean {
    return address !== undefined && this.#kernel.reachableOwnAddress(withoutMapping(address)) !== undefined
  }
}

/** Bound as the listener is, unless `bound` is. */
function listenOnPort(place: BootstrapPlace, port: number, bound?: TcpHandle): Server | undefined {
  const handle = bound ?? makeHidden(() => createServerHandle(place.address, port, place.family, place))
  if (typeof handle === 'number') return undefined
  const server = new net.Server()
  markOwn(server)
  // `listen` binds synchronously. Only a failure of listen(2) is reported later, as an event.
  let isInUse = false
  server.on('error', () => {
    isInUse = true
  })
  server.listen(handle)
  server.unref()
  return server.listening && !isInUse ? server : undefined
}

function mayAsk({ remoteAddress, localAddress }: Socket, listenerPort: number): boolean {
  if (remoteAddress === undefined || localAddress === undefined) return false
  return mayAskUs(withoutMapping(remoteAddress), withoutMapping(localAddress), listenerPort)
}

/**
 * Whether the caller of a shadow may learn the listener's id, which admits it to the listener. Abstract names have no
 * permissions; files have: the kernel judges users other than ours, at the file's own listener.
 */
function mayKnow(key: string, caller: Socket, kernel: Kernel): boolean {
  const uid = kernel.userOf(caller)
  return uid !== undefined && (isFileKey(key) ? kernel.isOwnUser(uid) : kernel.allowsUser(uid))
}
