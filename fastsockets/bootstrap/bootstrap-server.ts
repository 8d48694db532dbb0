/**
 * The listener on a hashed port: greets (bootstrap-layout.ts). Callers of this host go on at the door that the greeting
 * names; those of other hosts say HELLO here. One for each fast listener of the program, bound to the same address.
 */
import net from 'node:net'
import { CallersByUser, isOwnUser, makeHidden, markOwn, openLog, refuseDescriptors } from '../../nic/index.ts'
import { reachableOwnAddress, withoutMapping } from '../host/addresses.ts'
import {
  type Binding,
  createServerHandle,
  type ServerInternals,
  type TcpHandle,
} from '../host/node-internals.ts'
import { tellStep } from '../host/steps.ts'
import { type Family, isFileKey, shadowName, UNIX } from '../host/unix-paths.ts'
import { allowsUser } from '../policy/own-policy.ts'
import { encodeIntroduction, GREETING_MAGIC, type Introduction, NO_ID } from './bootstrap-layout.ts'
import { type Door, uidOf } from './door.ts'
import { CANDIDATE_COUNT, hashedPort } from './hashed-port.ts'
import { HelloCallers, type HelloHost } from './hello-callers.ts'
import { listenThroughPrimary, type SharedPlace } from './primary-listener.ts'
import { mayAskUs } from './remote-hosts.ts'

const log = openLog('fastsockets:bootstrap')

/** Callers from other hosts who have not finished the handshake yet; more are hung up on. */
const CALLERS_MAX = 256
/** The same from one address. */
const ADDRESS_CALLERS_MAX = 32

export interface BootstrapHost extends HelloHost {
  introduce(port: number): Introduction
  /** Where callers of this host say HELLO; undefined if there is no way to them. */
  openDoor(): Door | undefined
}

/** Where a listener of this process alone is, and how it is bound: its bootstrap is bound in the same way. */
export interface BootstrapPlace extends Binding {
  /** 16 random bytes. */
  readonly id: Buffer
  readonly port: number
  /** On a unix path its key. */
  readonly address: string
  readonly family: Family
}

/** What is greeted for: a listener, alone or shared. */
type Greeted = Pick<BootstrapPlace, 'id' | 'port' | 'address' | 'family'>

export class BootstrapServer {
  readonly port: number
  /** Clients find the port by themselves. */
  readonly isHashed: boolean
  readonly #server: net.Server
  readonly #place: Greeted
  readonly #door: Door | undefined
  readonly #greeting: Buffer
  readonly #callers: HelloCallers
  readonly #callersByAddress = new CallersByUser({
    own: 0,
    other: ADDRESS_CALLERS_MAX,
    others: CALLERS_MAX,
  })

  /**
   * On any port at all if every candidate is taken, unless others must find the same: then only the name service knows where.
   * Undefined if there is none.
   */
  static open(
    place: BootstrapPlace,
    host: BootstrapHost,
    avoid: ReadonlySet<number>,
  ): BootstrapServer | undefined {
    const { port: listenerPort, address, family, isPortShared } = place
    if (family === UNIX) return BootstrapServer.#openUnix(place, host)
    const tries = isPortShared ? CANDIDATE_COUNT : CANDIDATE_COUNT + 1
    for (let candidate = 0; candidate < tries; candidate++) {
      const port = candidate === CANDIDATE_COUNT ? 0 : hashedPort(listenerPort, candidate)
      if (port === listenerPort || avoid.has(port)) continue
      const handle = makeHidden(() => createServerHandle(address, port, family, place))
      if (typeof handle === 'number') continue
      const server = new net.Server()
      markOwn(server)
      // Listening happens at once; only a failure of listen(2) is reported, later, as an event.
      let isTaken = false
      server.on('error', () => {
        isTaken = true
      })
      server.listen(handle)
      server.unref()
      if (server.listening && !isTaken)
        return new BootstrapServer(server, port !== 0, place, host, isPortShared)
    }
    log('no port is free for the bootstrap of %s port %d', address, listenerPort)
    return undefined
  }

  static #openUnix(place: Greeted, host: BootstrapHost): BootstrapServer | undefined {
    const { address: key } = place
    const server = new net.Server()
    markOwn(server)
    server.on('error', error => log('%s: %s', key, error.message))
    // A cluster primary has no part in this.
    server.listen({ path: shadowName(key), exclusive: true })
    server.unref()
    refuseDescriptors(server)
    return server.listening ? new BootstrapServer(server, true, place, host) : undefined
  }

  /** For a listener that the workers of a cluster share: one that they share, too. `onOpen` may come much later. */
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
      bootstrap.#takeCallers(server)
      onOpen(bootstrap)
    })
  }

  private constructor(
    server: net.Server,
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
    this.#door = host.openDoor()
    const { id: listenerId } = place
    const introduction = {
      ...host.introduce(place.port),
      isShared,
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
   * Takes callers past net.Server, which would count them: when a worker disconnects, Node waits until all its servers
   * have lost their connections, and the lifeline of a peer on another host lasts as long as that peer.
   */
  #takeCallers(server: ServerInternals): void {
    const handle = server._handle as TcpHandle
    handle.onconnection = (status, accepted) => {
      if (status !== 0) return
      this.#greet(new net.Socket({ handle: accepted, readable: true, writable: true } as never))
    }
  }

  #greet(caller: net.Socket): void {
    tellStep('server called')
    markOwn(caller)
    caller.on('error', error => log('caller: %s', error.message))
    caller.unref()
    const { port, address, family } = this.#place
    const isHere = family === UNIX ? mayKnow(address, caller) : isOwnAddress(caller.remoteAddress)
    if (isHere) {
      // What comes next comes to the door: a caller costs nothing here once it has the greeting.
      caller.end(this.#greeting, () => caller.destroy())
      return tellStep('server greeted')
    }
    // Who we are is nobody's business on the network, but for hosts that may ask.
    const { remoteAddress: host = '' } = caller
    if (family === UNIX || !mayAsk(caller, port) || !this.#callersByAddress.enter(host))
      return void caller.destroy()
    caller.write(this.#greeting)
    this.#callers.take(
      caller,
      undefined,
      () => this.#greeting,
      () => this.#callersByAddress.leave(host),
    )
  }
}

function isOwnAddress(address: string | undefined): boolean {
  return address !== undefined && reachableOwnAddress(withoutMapping(address)) !== undefined
}

function mayAsk({ remoteAddress, localAddress }: net.Socket, listenerPort: number): boolean {
  if (remoteAddress === undefined || localAddress === undefined) return false
  return mayAskUs(withoutMapping(remoteAddress), withoutMapping(localAddress), listenerPort)
}

/**
 * Whether the caller of a shadow may know the listener's id, which lets it in. Abstract names have no permissions, files
 * have: those of another user than ours are for the kernel to judge, at its own listener.
 */
function mayKnow(key: string, caller: net.Socket): boolean {
  const uid = uidOf(caller)
  return uid !== undefined && (isFileKey(key) ? isOwnUser(uid) : allowsUser(uid))
}
