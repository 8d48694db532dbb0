/** `net.Socket`s of one simulated process, over its simulated kernel. */
import net from 'node:net'
import { type NodeInternals, nodeInternals } from '../../fastsockets/host/node-internals.ts'
import { errnoOf, UV_ECONNREFUSED } from '../../fastsockets/host/socket-errors.ts'
import { type Dialled, type SimulatedHost, SimulatedKernels } from '../../nic/simulated/index.ts'
import { ClosingPhase } from './closing-phase.ts'
import { type Dial, SimulatedTcpHandle } from './tcp-handle.ts'

/** Versions of Node differ in how much a socket buffers. */
const HIGH_WATER_MARK = 16 * 1024

/** All that the programs of a system have ever had. */
const socketsOf = new WeakMap<SimulatedKernels, net.Socket[]>()

/** The system is over. Node keeps a parser of HTTP, and what it refers to, until its socket has closed, and these never do. */
export function closeParsers(kernels: SimulatedKernels): void {
  for (const socket of socketsOf.get(kernels) ?? [])
    (socket as { parser?: { close(): void } | null }).parser?.close()
}

export class ProgramSockets {
  readonly #kernels: SimulatedKernels
  readonly #host: SimulatedHost
  readonly #closingPhase: ClosingPhase
  readonly #dial: Dial
  readonly #all = new Set<net.Socket>()
  /** Where each socket that calls calls. */
  readonly #places = new WeakMap<net.Socket, string>()

  constructor(kernels: SimulatedKernels, host: SimulatedHost) {
    this.#kernels = kernels
    this.#host = host
    this.#closingPhase = new ClosingPhase(host)
    this.#dial = (place, handle) =>
      kernels.dial(host, place, dialled => handle(this.#toHandle(place, dialled)))
  }

  /** A socket whose `connect` calls a place of the simulated network. */
  readonly open = (): net.Socket =>
    this.#wrap(new SimulatedTcpHandle(this.#closingPhase, this.#dial), { manualStart: true })

  /** Connects a socket of Node's through the simulated kernel. */
  connect(socket: net.Socket, options: net.NetConnectOpts): net.Socket {
    const { reinitialize } = nodeInternals() as NodeInternals
    const handle = new SimulatedTcpHandle(this.#closingPhase, this.#dial)
    ;(socket as unknown as Record<symbol, (handle: unknown) => void>)[reinitialize]?.(handle)
    this.#all.add(socket)
    if ('path' in options) this.#places.set(socket, options.path)
    return socket.connect(options)
  }

  /** Sockets that the program has not destroyed. */
  get openCount(): number {
    for (const socket of this.#all) if (socket.destroyed) this.#all.delete(socket)
    return this.#all.size
  }

  /** The path that a socket has called. */
  placeOf(socket: net.Socket): string | undefined {
    return this.#places.get(socket)
  }

  /** False if another program listens there. */
  listen(
    place: string,
    accept: (socket: net.Socket, caller: SimulatedHost) => void,
    allowHalfOpen = false,
  ): boolean {
    return this.#kernels.listenAt(place, this.#host, (end, caller, port) => {
      const names = namesOf(nameOf(place), { address: SimulatedKernels.addressOf(caller).host, port })
      const socket = this.#wrap(SimulatedTcpHandle.of(end, names, this.#closingPhase), { allowHalfOpen })
      this.#all.add(socket)
      accept(socket, caller)
    })
  }

  unlisten(place: string): void {
    this.#kernels.unlisten(place, this.#host)
  }

  #wrap(handle: SimulatedTcpHandle, more: { manualStart?: boolean; allowHalfOpen?: boolean }): net.Socket {
    const options = {
      handle,
      ...more,
      highWaterMark: HIGH_WATER_MARK,
      readable: true,
      writable: true,
    }
    const socket = new net.Socket(options as net.SocketConstructorOpts)
    const all = socketsOf.get(this.#kernels)
    if (all === undefined) socketsOf.set(this.#kernels, [socket])
    else all.push(socket)
    return socket
  }

  #toHandle(place: string, dialled: Dialled): Parameters<Parameters<Dial>[1]>[0] {
    if (dialled === 'ECONNREFUSED') return { errno: UV_ECONNREFUSED }
    if (dialled === 'ETIMEDOUT') return { errno: errnoOf('ETIMEDOUT') }
    const own = { address: SimulatedKernels.addressOf(this.#host).host, port: dialled.port }
    const [peer, self] = namesOf(nameOf(place), own)
    return { tcp: dialled.end, names: [self, peer] }
  }
}

interface Name {
  address?: string
  port?: number
}

/** A connection to a path has no address at either end. */
function namesOf(listener: Name, caller: Name): readonly [listener: Name, caller: Name] {
  return [listener, listener.address === undefined ? {} : caller]
}

function nameOf(place: string): Name {
  const [address, port] = place.split(':')
  return address === undefined || port === undefined ? {} : { address, port: Number(port) }
}
