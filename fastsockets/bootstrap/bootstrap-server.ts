/**
 * The listener on a hashed port: greets, hears who calls, and answers with an offer or a refusal
 * (bootstrap-layout.ts). One for each fast TCP listener of the program, bound to the same address.
 */
import net from 'node:net'
import { markOwn, openLog } from '../../nic/index.ts'
import { clearTimeout, setTimeout } from '../../nic/real-time.ts'
import { reachableOwnAddress, withoutMapping } from '../host/addresses.ts'
import {
  type Binding,
  createServerHandle,
  type ServerInternals,
  type TcpHandle,
} from '../host/node-internals.ts'
import { tellStep } from '../host/steps.ts'
import { type Family, shadowName, UNIX } from '../host/unix-paths.ts'
import {
  decodeIntroduction,
  encodeAnswer,
  encodeIntroduction,
  GREETING_MAGIC,
  HELLO_MAGIC,
  INTRODUCTION_SIZE,
  type Introduction,
  mayBe,
} from './bootstrap-layout.ts'
import { CANDIDATE_COUNT, hashedPort } from './hashed-port.ts'
import { listenThroughPrimary, type SharedPlace } from './primary-listener.ts'
import { mayAskUs } from './remote-hosts.ts'

const log = openLog('fastsockets:bootstrap')

/** Callers who have not finished the handshake yet; more are hung up on. */
const CALLERS_MAX = 256
/** All the time that one of them has, however it uses it. */
const HELLO_TIMEOUT_MS = 2000

/** The bootstrap connection of a finished handshake: it stays open as long as the channel lives. */
export type Finish = (connection: net.Socket) => void

export type Reply =
  | { readonly refusal: number }
  | { readonly driver: string; readonly blob: Uint8Array; readonly finish: Finish }

export interface BootstrapHost {
  introduce(port: number): Introduction
  answer(hello: Introduction): Reply
}

/** Where a listener of this process alone is, and how it is bound: its bootstrap is bound in the same way. */
export interface BootstrapPlace extends Binding {
  readonly port: number
  readonly address: string
  readonly family: Family
}

export class BootstrapServer {
  readonly port: number
  /** Clients find the port by themselves. */
  readonly isHashed: boolean
  readonly #server: net.Server
  /** The next caller may be greeted by somebody else. */
  readonly #isShared: boolean
  /** Each with the end of its time. */
  readonly #callers = new Map<net.Socket, NodeJS.Timeout>()

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
    if (family === UNIX) return BootstrapServer.#openUnix(address, host)
    const tries = isPortShared ? CANDIDATE_COUNT : CANDIDATE_COUNT + 1
    for (let candidate = 0; candidate < tries; candidate++) {
      const port = candidate === CANDIDATE_COUNT ? 0 : hashedPort(listenerPort, candidate)
      if (port === listenerPort || avoid.has(port)) continue
      const handle = createServerHandle(address, port, family, place)
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
        return new BootstrapServer(server, port !== 0, listenerPort, host, isPortShared)
    }
    log('no port is free for the bootstrap of %s port %d', address, listenerPort)
    return undefined
  }

  static #openUnix(key: string, host: BootstrapHost): BootstrapServer | undefined {
    const server = new net.Server()
    markOwn(server)
    server.on('error', error => log('%s: %s', key, error.message))
    // A cluster primary has no part in this.
    server.listen({ path: shadowName(key), exclusive: true })
    server.unref()
    return server.listening ? new BootstrapServer(server, true, 0, host) : undefined
  }

  /** For a listener that the workers of a cluster share: one that they share, too. `onOpen` may come much later. */
  static openShared(
    place: SharedPlace,
    host: BootstrapHost,
    avoid: ReadonlySet<number>,
    onOpen: (bootstrap: BootstrapServer | undefined) => void,
  ): void {
    listenThroughPrimary(place, avoid, server => {
      if (server === undefined) {
        log('the cluster has no bootstrap for %s port %d', place.address, place.port)
        return onOpen(undefined)
      }
      const bootstrap = new BootstrapServer(server, true, place.port, host, true)
      bootstrap.#takeCallers(server, place.port, host)
      onOpen(bootstrap)
    })
  }

  private constructor(
    server: net.Server,
    isHashed: boolean,
    listenerPort: number,
    host: BootstrapHost,
    isShared = false,
  ) {
    const address = server.address()
    // 0 on a unix path.
    const port = typeof address === 'object' ? (address?.port ?? 0) : 0
    this.port = port
    this.isHashed = isHashed
    this.#server = server
    this.#isShared = isShared
    server.on('connection', caller => this.#greet(caller, listenerPort, host))
    log('port %d %s %d', listenerPort, isHashed ? 'is hashed to' : 'has its bootstrap at', port)
  }

  close(): void {
    this.#server.close()
    for (const caller of this.#callers.keys()) caller.destroy()
  }

  /**
   * Takes callers past net.Server, which would count them: when a worker disconnects, Node waits until all its servers
   * have lost their connections, and a lifeline lasts as long as its peer.
   */
  #takeCallers(server: ServerInternals, listenerPort: number, host: BootstrapHost): void {
    const handle = server._handle as TcpHandle
    handle.onconnection = (status, accepted) => {
      if (status !== 0) return
      const caller = new net.Socket({ handle: accepted, readable: true, writable: true } as never)
      this.#greet(caller, listenerPort, host)
    }
  }

  #greet(caller: net.Socket, listenerPort: number, host: BootstrapHost): void {
    tellStep('server called')
    markOwn(caller)
    caller.on('error', error => log('caller: %s', error.message))
    caller.unref()
    // Who we are is nobody's business on the network, but for hosts that may ask.
    if (this.#callers.size >= CALLERS_MAX || !isWelcome(caller, listenerPort)) {
      caller.destroy()
      return
    }
    this.#callers.set(caller, setTimeout(() => caller.destroy(), HELLO_TIMEOUT_MS).unref())
    caller.once('close', () => this.#forget(caller))
    const greeting = { ...host.introduce(listenerPort), isShared: this.#isShared }
    caller.write(encodeIntroduction(GREETING_MAGIC, greeting))
    tellStep('server greeted')
    let heard = Buffer.alloc(0)
    const hear = (bytes: Buffer): void => {
      heard = Buffer.concat([heard, bytes])
      if (heard.length > INTRODUCTION_SIZE || !mayBe(HELLO_MAGIC, heard)) return void caller.destroy()
      if (heard.length < INTRODUCTION_SIZE) return
      caller.off('data', hear)
      this.#reply(caller, decodeIntroduction(HELLO_MAGIC, heard) as Introduction, host)
    }
    caller.on('data', hear)
  }

  /** It has finished, or is gone. */
  #forget(caller: net.Socket): void {
    clearTimeout(this.#callers.get(caller))
    this.#callers.delete(caller)
  }

  #reply(caller: net.Socket, hello: Introduction, host: BootstrapHost): void {
    tellStep('server introduced')
    const reply = host.answer(hello)
    if ('refusal' in reply) {
      log('refused pid %d: %d', hello.pid, reply.refusal)
      caller.end(encodeAnswer({ result: reply.refusal, driver: '', blob: Buffer.alloc(0) }))
      return
    }
    this.#forget(caller)
    caller.write(encodeAnswer({ result: 0, driver: reply.driver, blob: Buffer.from(reply.blob) }))
    tellStep('server answered')
    reply.finish(caller)
  }
}

/** Callers of a unix path have no address. */
function isWelcome({ remoteAddress, localAddress }: net.Socket, listenerPort: number): boolean {
  if (listenerPort === 0) return true
  if (remoteAddress === undefined || localAddress === undefined) return false
  const peer = withoutMapping(remoteAddress)
  return reachableOwnAddress(peer) !== undefined || mayAskUs(peer, withoutMapping(localAddress), listenerPort)
}
