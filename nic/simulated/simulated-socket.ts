/**
 * Connections beside the NIC, as a kernel's TCP gives them: text in order, the end when the other side ends or its process
 * dies. A partition delays them. A process listens at its host's address.
 */
import { EventEmitter } from 'node:events'
import { NicError } from '../errors.ts'
import type { NetworkAddress } from '../nic.ts'
import type { SimulatedHost } from './simulated-host.ts'
import type { SimulatedNetwork } from './simulated-network.ts'
import { SimulatedTcp } from './simulated-tcp.ts'

/** A kernel's TCP on a local network: one way, and between two attempts across a partition. */
const ONE_WAY_US = 50
const RETRY_US = 200_000
const PORT = 7400
/** A connect(2) without an answer ends after so long: the default of Linux. */
const DIAL_US_MAX = 127_000_000
const CLIENT_PORT_MIN = 32_768
/** `ECONNREFUSED` of Linux. */
const REFUSED = 111

type Listener = (socket: SimulatedSocket) => void

/** One end of a connection of programs, and the caller's host and port. */
export type AcceptEnd = (end: SimulatedTcp, caller: SimulatedHost, callerPort: number) => void

/** What a connect(2) comes to: an end of the connection, refused, or no answer. */
export type Dialled = { readonly end: SimulatedTcp; readonly port: number } | 'ECONNREFUSED' | 'ETIMEDOUT'

interface Place {
  readonly host: SimulatedHost
  readonly accept: AcceptEnd
}

/** All kernels of one network. */
export class SimulatedKernels {
  readonly #network: SimulatedNetwork
  readonly #listeners = new Map<number, Listener>()
  readonly #sockets = new Set<SimulatedSocket>()
  readonly #connections = new Set<SimulatedTcp>()
  /** Where programs listen: an address and port, or a path. */
  readonly #places = new Map<string, Place>()
  #nextPort = CLIENT_PORT_MIN

  constructor(network: SimulatedNetwork) {
    this.#network = network
  }

  static addressOf(host: SimulatedHost): NetworkAddress {
    return { host: `10.0.${host.number >> 8}.${(host.number & 0xff) + 1}`, port: PORT }
  }

  listen(host: SimulatedHost, listener: Listener): void {
    this.#listeners.set(host.number, listener)
  }

  /** Rejects if no process listens there, and after `timeoutMs` if the host does not answer. */
  connect(from: SimulatedHost, address: NetworkAddress, timeoutMs: number): Promise<SimulatedSocket> {
    return new Promise((resolve, reject) => {
      const untilUs = from.nowUs + timeoutMs * 1000
      const to = this.#network.hosts.find(host => SimulatedKernels.addressOf(host).host === address.host)
      const fail = (message: string, errno?: number): void =>
        void from.post(0, () =>
          this.#settle(() =>
            reject(new NicError('ERR_NIC_CONNECT_FAILED', message, errno === undefined ? {} : { errno })),
          ),
        )
      const call = (): void => {
        const isLate = this.#network.timeline.nowUs >= untilUs
        if (to === undefined || to.isCutOff || this.#network.isCut(from, to)) {
          if (isLate) return fail(`${address.host} does not answer`)
          return void this.#network.timeline.schedule(this.#network.timeline.nowUs + RETRY_US, call)
        }
        const listener = this.#listeners.get(to.number)
        if (listener === undefined || to.state === 'dead') return fail('connection refused', REFUSED)
        const near = new SimulatedSocket(this.#network, from, to)
        const far = new SimulatedSocket(this.#network, to, from)
        near.other = far
        far.other = near
        this.#sockets.add(near).add(far)
        for (const socket of [near, far]) socket.on('close', () => this.#sockets.delete(socket))
        to.post(0, () => listener(far))
        from.post(ONE_WAY_US, () => this.#settle(() => resolve(near)))
      }
      this.#network.timeline.schedule(from.nowUs + ONE_WAY_US, call)
    })
  }

  /** A program listens at `place`, an address and port, or a path; false if another does. `unlisten` ends it. */
  listenAt(place: string, host: SimulatedHost, accept: AcceptEnd): boolean {
    if (this.#places.has(place)) return false
    this.#places.set(place, { host, accept })
    return true
  }

  unlisten(place: string, host: SimulatedHost): void {
    if (this.#places.get(place)?.host === host) this.#places.delete(place)
  }

  /** A program's connect(2). Returns what gives it up. */
  dial(from: SimulatedHost, place: string, handle: (dialled: Dialled) => void): () => void {
    const { timeline } = this.#network
    const untilUs = from.nowUs + DIAL_US_MAX
    let isOver = false
    const settle = (dialled: Dialled): void =>
      void from.post(ONE_WAY_US, () => {
        if (isOver) return typeof dialled === 'string' ? undefined : dialled.end.close()
        isOver = true
        this.#settle(() => handle(dialled))
      })
    const call = (): void => {
      const there = this.#places.get(place)
      // The kernel of a process that has ended refuses what answers its call.
      if (isOver || from.state === 'dead') return
      if (there !== undefined && (there.host.isCutOff || this.#network.isCut(from, there.host))) {
        if (timeline.nowUs >= untilUs) return settle('ETIMEDOUT')
        return void timeline.schedule(timeline.nowUs + RETRY_US, call)
      }
      if (there === undefined || there.host.state === 'dead') return settle('ECONNREFUSED')
      const [near, far] = this.connectPrograms(from, there.host)
      const port = this.#nextPort++
      there.host.post(0, () => this.#settle(() => there.accept(far, from, port)))
      settle({ end: near, port })
    }
    timeline.schedule(from.nowUs + ONE_WAY_US, call)
    return () => {
      isOver = true
    }
  }

  /** Two ends of a TCP connection between programs. */
  connectPrograms(near: SimulatedHost, far: SimulatedHost): [SimulatedTcp, SimulatedTcp] {
    const ends = SimulatedTcp.pair(this.#network, near, far)
    for (const end of ends) this.#connections.add(end)
    return ends
  }

  /** Connections of a host that is cut off end on the other side once it has been silent for so long. */
  expectSilence(host: SimulatedHost, silentMs: number): void {
    const timeUs = this.#network.timeline.nowUs + silentMs * 1000
    this.#network.timeline.schedule(timeUs, () => {
      for (const socket of this.#sockets)
        if (socket.host === host || socket.other.host === host) socket.lose()
      for (const end of this.#connections) if (end.host === host || end.other.host === host) end.lose()
    })
  }

  #settle(run: () => void): void {
    this.#network.timeline.hasSettled = true
    run()
  }

  /** The kernel closes the connections of a process that has ended, as after SIGKILL. */
  closeAll(host: SimulatedHost): void {
    this.#listeners.delete(host.number)
    for (const [place, there] of this.#places) if (there.host === host) this.#places.delete(place)
    for (const socket of this.#sockets) {
      if (socket.host !== host) continue
      this.#sockets.delete(socket)
      socket.abandon()
    }
    for (const end of this.#connections) if (end.host === host) end.close()
  }
}

export class SimulatedSocket extends EventEmitter {
  readonly host: SimulatedHost
  readonly localAddress: string
  readonly remoteAddress: string
  readonly writableLength = 0
  readonly readableLength = 0
  other!: SimulatedSocket
  writable = true
  #isPaused = false
  #hasClosed = false
  /** The other side has ended. */
  #isOver = false
  #waiting = ''
  /** What was sent last arrives then: TCP keeps order. */
  #arrivesAtUs = 0
  readonly #network: SimulatedNetwork
  readonly #peer: SimulatedHost

  constructor(network: SimulatedNetwork, host: SimulatedHost, peer: SimulatedHost) {
    super()
    this.#network = network
    this.host = host
    this.#peer = peer
    this.localAddress = SimulatedKernels.addressOf(host).host
    this.remoteAddress = SimulatedKernels.addressOf(peer).host
  }

  setEncoding(): void {}

  write(text: string): void {
    if (this.writable) this.#carry(() => this.other.#receive(text))
  }

  end(): void {
    if (!this.writable) return
    this.writable = false
    this.#carry(() => this.other.#receiveEnd())
    if (this.#isOver) this.#close()
  }

  destroy(): void {
    this.end()
    this.#close()
  }

  /** The process has ended: the kernel ends the connection. */
  abandon(): void {
    this.#hasClosed = true
    if (!this.writable) return
    this.writable = false
    this.#carry(() => this.other.#receiveEnd())
  }

  /** The kernel gives the connection up. */
  lose(): void {
    this.writable = false
    this.#close()
  }

  read(): void {}

  pause(): void {
    this.#isPaused = true
  }

  resume(): void {
    this.#isPaused = false
    if (this.#waiting !== '') this.#receive('')
    else if (this.#isOver) this.#close()
  }

  ref(): void {}

  unref(): void {}

  /** Across a partition the kernel tries again. */
  #carry(arrive: () => void): void {
    const { timeline } = this.#network
    const go = (): void => {
      if (this.#peer.isCutOff || this.host.isCutOff) return
      if (!this.#network.isCut(this.host, this.#peer)) return void this.#peer.post(0, arrive)
      this.#arrivesAtUs = timeline.nowUs + RETRY_US
      timeline.schedule(this.#arrivesAtUs, go)
    }
    this.#arrivesAtUs = Math.max(this.#arrivesAtUs, this.host.nowUs + ONE_WAY_US)
    timeline.schedule(this.#arrivesAtUs, go)
  }

  #receive(text: string): void {
    if (this.#hasClosed) return
    this.#waiting += text
    if (this.#isPaused || this.#waiting === '') return
    const all = this.#waiting
    this.#waiting = ''
    this.#network.timeline.hasSettled = true
    this.emit('data', all)
  }

  #receiveEnd(): void {
    this.#isOver = true
    // `allowHalfOpen` is off: the socket ends its own side, too.
    this.end()
    if (!this.#isPaused || this.#waiting === '') this.#close()
  }

  #close(): void {
    if (this.#hasClosed) return
    this.#hasClosed = true
    this.host.post(0, () => {
      this.#network.timeline.hasSettled = true
      this.emit('close')
    })
  }
}
