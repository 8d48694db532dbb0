/**
 * One simulated process in one of three network namespaces of a host: listeners on ports, shared ports and unix paths, with a
 * bootstrap, a door and a name in the rendezvous folder, and programs that connect to those of others through `Peers`. It also is a stranger to others: at hashed
 * ports, at doors, in the folder.
 */
import type net from 'node:net'
import type { NetConnectOpts } from 'node:net'
import { openProcess } from '../../am/simulated-process.ts'
import {
  encodeIntroduction,
  GREETING_MAGIC,
  NO_ID,
  REFUSAL,
  VERSION,
} from '../../fastsockets/bootstrap/bootstrap-layout.ts'
import { BootstrapServer } from '../../fastsockets/bootstrap/bootstrap-server.ts'
import { doorPath } from '../../fastsockets/bootstrap/door.ts'
import { FolderServer } from '../../fastsockets/bootstrap/folder-server.ts'
import { CANDIDATE_COUNT, hashedPort } from '../../fastsockets/bootstrap/hashed-port.ts'
import { Peers } from '../../fastsockets/connect/peers.ts'
import type { Reached } from '../../fastsockets/connect/worker-group.ts'
import { PortShare, SyntheticPorts } from '../../fastsockets/host/synthetic-ports.ts'
import { type Asked, type Family, fileOfKey, shadowName, UNIX } from '../../fastsockets/host/unix-paths.ts'
import type { FallbackReason } from '../../fastsockets/reasons.ts'
import type { FaultRandom } from '../../nic/fault/fault-random.ts'
import { hasName } from '../../nic/index.ts'
import { listenerName, SLOTS, slotName, unixListenerName } from '../../nic/rendezvous/names-layout.ts'
import { Sweeper } from '../../nic/rendezvous/sweeping.ts'
import { type SimulatedHost, SimulatedKernels, type SimulatedNetwork } from '../../nic/simulated/index.ts'
import { channelHostOf, SimulatedShare } from './channel-process.ts'
import { Broken } from './ledger.ts'
import { OWN_USER, programKernel, programPorts, type StrangePlaces } from './program-kernel.ts'
import { ProgramSockets } from './program-sockets.ts'
import type { Published, SharedFolder } from './shared-folder.ts'
import { type Player, QUEUE_SIZE } from './world.ts'

const NAMESPACES = 3
const PORTS = [80, 8080, 5000]
/** Several processes may listen there, as the threads of a server do. */
const SHARED_PORT = 5000
/** Socket files, which all namespaces see. */
const FILES = ['file-a1-1', 'file-a1-2']
const CALLS_MAX = 6
const NO_FINAL_CALLS = -1
/** From the end of a program to the end of its process. */
const EXIT_MS = 10
const HOST_IDENTITY = Buffer.alloc(16, 7)
/** What a stranger does with a caller at a hashed port, and in the folder. */
const STRANGERS = [
  'silent',
  'hangs up',
  'babbles',
  'other listener',
  'half',
  'greets with the name of a door at which no process listens',
  'own door',
] as const
const SQUATS = ['file', 'folder', 'link', 'dead', 'socket'] as const

/** Where a program listens: an address and port, or the key of a socket file and port 0. */
interface Target {
  readonly address: string
  readonly port: number
  readonly family: Family
}

interface Listener extends Target {
  /** In hexadecimal. */
  readonly id: string
  /** The address of the process. */
  readonly home: string
  readonly bootstrap: BootstrapServer
  readonly inFolder: FolderServer | undefined
}

/** What all processes of one system share. */
export interface PeersSystem {
  readonly network: SimulatedNetwork
  readonly kernels: SimulatedKernels
  readonly folder: SharedFolder
  readonly random: FaultRandom
  readonly strangePlaces: StrangePlaces
  /** Endpoint ids of all processes that have ever listened there. */
  readonly owners: Map<string, Set<string>>
}

export class PeersProcess implements Player {
  readonly number: number
  readonly host: SimulatedHost
  readonly isWaiting = true
  fault: unknown
  isOver = false
  /** Connects that have reached their listener, and that have not. */
  reached = 0
  missed = 0
  readonly listeners = new Map<string, Listener>()
  readonly peers: Peers
  readonly id: string
  readonly address: string
  readonly #system: PeersSystem
  readonly #sockets: ProgramSockets
  readonly #published = new Set<Published>()
  readonly #squatted = new Set<string>()
  readonly #squattedNames = new Set<string>()
  #underWay = 0
  #finalCalls = NO_FINAL_CALLS

  constructor(system: PeersSystem, host: SimulatedHost) {
    const { network, kernels, strangePlaces } = system
    this.#system = system
    this.number = host.number
    this.host = host
    this.address = addressOf(host.number % NAMESPACES)
    this.#sockets = new ProgramSockets(kernels, host)
    const { runtime, driver } = openProcess(network, kernels, host, false, QUEUE_SIZE)
    const sweeper = new Sweeper(host.clock)
    const kernel = programKernel({
      network,
      host,
      sockets: this.#sockets,
      address: this.address,
      isOwnAddress: one => one === this.address || this.#isInNamespace(one),
      strangePlaces,
      namespace: this.address,
      firstTurn: system.random.within(0, SLOTS - 1),
      publish: (server, names, shared) => this.#publish(server, names, shared, sweeper),
    })
    const peersHost = {
      kernel,
      network: programPorts(this.#sockets),
      identity: () => ({ hostIdentity: HOST_IDENTITY, uid: OWN_USER, pid: this.number + 1 }),
      localDrivers: () => [driver],
      remoteDrivers: () => [],
      channelHost: channelHostOf(host, runtime.eventLoop, false),
      shares: {
        ports: new PortShare(new SyntheticPorts([20_000, 20_999], () => ({ stride: 1, offset: 0 }))),
        unread: new SimulatedShare(system.random),
      },
      retentionBytes: QUEUE_SIZE,
    }
    this.peers = new Peers(
      (_stream, port, address, family) =>
        this.#knows(port, address, family) ? REFUSAL.LIMIT : REFUSAL.NOT_LISTENING,
      connectOver(this.#sockets, system.folder, this.address),
      false,
      peersHost,
    )
    this.id = this.peers.introduce(0).endpointId.toString('hex')
  }

  get isAlive(): boolean {
    return this.host.state !== 'dead' && !this.isOver
  }

  act(): void {
    const { random } = this.#system
    if (this.host.state !== 'running') return
    const dice = random.within(0, 99)
    const own = targetAt(random.within(0, TARGETS - 1), this.address)
    const any = targetAt(random.within(0, TARGETS - 1), addressOf(random.within(0, NAMESPACES - 1)))
    if (dice < 8) this.#listen(own)
    else if (dice < 10) this.#close(placeOf(own))
    else if (dice < 13) this.#squat(own)
    else if (dice < 16) this.#squatName(any)
    else if (dice < 18) {
      const slot = random.within(-1, 1)
      this.#system.folder.remove(slot < 0 ? nameOf(any) : slotName(nameOf(any), slot))
    } else if (dice < 24) this.#leave()
    else if (this.#underWay < CALLS_MAX) this.#call(any)
  }

  async close(): Promise<void> {
    this.settleDown()
    for (const place of [...this.listeners.keys()]) this.#close(place)
    this.#closeChannels()
    // A handshake under way may open a channel until the process has exited.
    this.host.clock.setTimeout(() => {
      this.host.kill()
      this.#system.kernels.closeAll(this.host)
    }, EXIT_MS)
  }

  /** It was killed. */
  die(): void {
    for (const published of this.#published) published.kill()
  }

  /** It is no stranger to others any more. */
  settleDown(): void {
    while (this.#squatted.size > 0 || this.#squattedNames.size > 0) this.#leave()
  }

  /** What is not as it must be, once nothing moves any more; undefined if all is. */
  findUnfinished(all: readonly PeersProcess[]): string | undefined {
    if (this.#underWay > 0) return `${this.#underWay} connects of process ${this.number} go on`
    const hidden = all.map(one => one.#findHidden()).find(why => why !== undefined)
    if (hidden !== undefined) return hidden
    if (this.#finalCalls === NO_FINAL_CALLS) {
      // Without a channel each of the last connects needs a handshake.
      if (this.peers.openChannels.length > 0) {
        this.#closeChannels()
        return `process ${this.number} closes its channels`
      }
      this.#finalCalls = 0
      for (const one of all) for (const listener of one.listeners.values()) this.#callFinally(listener)
      return 'the last connects have begun'
    }
    if (this.#finalCalls > 0) return `${this.#finalCalls} of the last connects go on`
    return this.#findLeak(all)
  }

  #closeChannels(): void {
    for (const channel of [...this.peers.openChannels]) channel.close()
  }

  /** A listener that other namespaces do not find. */
  #findHidden(): string | undefined {
    const { folder } = this.#system
    const own = new Set([...this.#published].map(({ place }) => place))
    for (const listener of this.listeners.values()) {
      const name = nameOf(listener)
      const slots = Array.from({ length: isShared(listener) ? SLOTS : 0 }, (_, slot) => slotName(name, slot))
      // A client that finds no file of that name does not look for slots.
      const isFound = hasName(name) && [name, ...slots].some(one => own.has(folder.placeOf(one)))
      if (listener.inFolder !== undefined && !isFound)
        return `process ${this.number} listens at ${name}, and the folder does not lead there`
    }
    return undefined
  }

  #findLeak(all: readonly PeersProcess[]): string | undefined {
    const { openChannels } = this.peers
    const alive = new Map(all.map(one => [one.id, one]))
    for (const { peerName } of openChannels) {
      const peer = alive.get(peerName)
      if (peer === undefined) return `process ${this.number} has a channel to a process that is gone`
      const count = openChannels.filter(one => one.peerName === peerName).length
      const there = peer.peers.openChannels.filter(one => one.peerName === this.id).length
      // The channel of a process to itself has both ends here.
      if (peer !== this && count !== there)
        return `process ${this.number} has ${count} channels to process ${peer.number}, which has ${there}`
    }
    const kept = this.#sockets.openCount
    return kept === openChannels.length
      ? undefined
      : `process ${this.number} keeps ${kept} connections for ${openChannels.length} channels`
  }

  #isInNamespace(address: string): boolean {
    return this.#system.network.hosts.some(
      host =>
        host.number % NAMESPACES === this.number % NAMESPACES &&
        SimulatedKernels.addressOf(host).host === address,
    )
  }

  #listen(target: Target): void {
    const { address, port, family } = target
    const place = placeOf(target)
    const isPortShared = isShared(target)
    const hasPlace = this.#sockets.listen(place, socket => void socket.destroy())
    if (this.listeners.has(place) || !(hasPlace || isPortShared)) return
    const where = {
      id: this.#system.network.newIdentity(),
      address,
      port,
      family,
      isRequired: false,
      ipv6Only: false,
      isPortShared,
      isShared: isPortShared,
    } as const
    const bootstrap = BootstrapServer.open(where, this.peers, new Set())
    if (bootstrap === undefined) return this.#sockets.unlisten(place)
    const owners = this.#system.owners.get(place) ?? new Set()
    this.#system.owners.set(place, owners.add(this.id))
    const inFolder = FolderServer.open(where, this.peers)
    this.listeners.set(place, {
      ...target,
      id: where.id.toString('hex'),
      home: this.address,
      bootstrap,
      inFolder,
    })
  }

  #knows(port: number, address: string, family: Asked): boolean {
    return [...this.listeners.values()].some(
      one => one.port === port && address === (family === UNIX ? one.id : one.address),
    )
  }

  #close(place: string): void {
    const listener = this.listeners.get(place)
    if (listener === undefined) return
    this.listeners.delete(place)
    this.#sockets.unlisten(place)
    listener.bootstrap.close()
    listener.inFolder?.close()
  }

  #publish(
    server: net.Server,
    names: readonly string[],
    shared: readonly string[],
    sweeper: Sweeper,
  ): Published['publication'] | string {
    const published = this.#system.folder.publish(server, names, shared, sweeper)
    if (typeof published === 'string') return published
    const { place, publication } = published
    this.#sockets.listen(place, socket => server.emit('connection', socket))
    this.#published.add(published)
    return {
      ...publication,
      close: () => {
        this.#published.delete(published)
        this.#sockets.unlisten(place)
        publication.close()
      },
    }
  }

  #squat({ address, port, family }: Target): void {
    const { random, network, strangePlaces } = this.#system
    const candidate = random.within(0, CANDIDATE_COUNT - 1)
    const place =
      family === UNIX
        ? this.address + shadowName(address, candidate)
        : placeOf({ address, port: hashedPort(port, candidate) })
    const kind = STRANGERS[random.within(0, STRANGERS.length - 1)] as (typeof STRANGERS)[number]
    const door = network.newIdentity()
    if (!this.#sockets.listen(place, caller => this.#answer(caller, kind, port, door))) return
    this.#squatted.add(place)
    if (kind !== 'own door') return
    const path = this.address + doorPath(door)
    this.#sockets.listen(path, caller => this.#answer(caller, 'babbles', port, NO_ID))
    this.#squatted.add(path)
    if (random.chance(0.5)) strangePlaces.add(path)
  }

  #squatName(target: Target): void {
    const name = nameOf(target)
    const { folder, random, strangePlaces } = this.#system
    const kind = SQUATS[random.within(0, SQUATS.length - 1)] as (typeof SQUATS)[number]
    const place = folder.squat(name, kind)
    this.#squattedNames.add(name)
    if (place === undefined) return
    const behaviour = STRANGERS[random.within(0, STRANGERS.length - 3)] as (typeof STRANGERS)[number]
    this.#sockets.listen(place, caller => this.#answer(caller, behaviour, target.port, NO_ID))
    this.#squatted.add(place)
    if (random.chance(0.3)) strangePlaces.add(place)
  }

  /** What a stranger does with a caller. */
  #answer(caller: net.Socket, kind: (typeof STRANGERS)[number], port: number, door: Buffer): void {
    caller.on('error', () => {})
    caller.on('end', () => caller.destroy())
    caller.resume()
    const posed = {
      version: VERSION,
      isShared: false,
      isRequired: false,
      hostIdentity: HOST_IDENTITY,
      uid: OWN_USER,
    }
    const greet = (port: number): Buffer =>
      encodeIntroduction(GREETING_MAGIC, { ...posed, port, endpointId: door, pid: 1, door, listenerId: door })
    if (kind === 'hangs up') caller.destroy()
    else if (kind === 'babbles') caller.write('220 ready\r\n')
    else if (kind === 'other listener') caller.write(greet(1))
    else if (kind === 'half') caller.write(greet(port).subarray(0, this.#system.random.within(1, 95)))
    else if (kind !== 'silent') caller.write(greet(port))
  }

  #leave(): void {
    const [place] = this.#squatted
    const [name] = this.#squattedNames
    if (place !== undefined) {
      this.#squatted.delete(place)
      this.#sockets.unlisten(place)
    }
    if (name === undefined) return
    this.#squattedNames.delete(name)
    this.#system.folder.leave(name)
  }

  #callFinally(listener: Listener): void {
    const { home, bootstrap, inFolder } = listener
    const isReachable = home === this.address ? bootstrap.isHashed : inFolder !== undefined
    if (!isReachable) return
    this.#finalCalls++
    this.#call(listener, why => {
      this.#finalCalls--
      if (why !== undefined)
        throw new Broken(`process ${this.number} does not reach ${placeOf(listener)}: ${why}`)
    })
  }

  #call(target: Target, onOver = (_why: string | undefined): void => {}): void {
    this.#underWay++
    const over = (why: string | undefined): void => {
      this.#underWay--
      if (why === undefined) this.reached++
      else this.missed++
      onOver(why)
    }
    this.peers
      .reach(target.address, target.port, target.family)
      .then(outcome => ('code' in outcome ? over(textOf(outcome)) : this.#ask(outcome, target, over)))
      .catch(error => {
        if (this.isAlive) this.fault ??= error
      })
  }

  /** Asks for a connection over the channel: its listener refuses it with LIMIT, any other program with NOT_LISTENING. */
  #ask({ channel, address }: Reached, called: Target, over: (why: string | undefined) => void): void {
    const place = placeOf(called)
    if (this.#system.owners.get(place)?.has(channel.peerName) !== true)
      throw new Broken(`process ${this.number} calls ${place}, and reaches another`)
    // A shared listener of its own: that channel is not simulated.
    const { ownChannels } = this.peers
    if (ownChannels.includes(channel)) {
      for (const own of ownChannels) own.close()
      return over(undefined)
    }
    const nothing = (): void => {}
    const sink = {
      isReading: false,
      handleData: () => 0,
      handleEnd: nothing,
      handleWritten: nothing,
      handleSent: nothing,
      handleShutdown: nothing,
      handleError: nothing,
      handleConnected: () => {
        throw new Broken('a listener that refuses has accepted')
      },
      handleRefused: (refusal: number | undefined) => {
        over(refusal === REFUSAL.LIMIT ? undefined : `a refusal ${refusal}`)
      },
    }
    if (channel.connect(sink, called.port, address, called.family) === undefined)
      over('the channel has ended')
  }
}

/** `folder`: names there are called by descriptors of the process. */
function connectOver(sockets: ProgramSockets, folder: SharedFolder, namespace: string) {
  return function (this: net.Socket, options: NetConnectOpts): net.Socket {
    if (!('path' in options)) return sockets.connect(this, options)
    const { path } = options
    const isInFolder = path.startsWith('/proc/self/fd/')
    return sockets.connect(this, { path: isInFolder ? folder.placeAt(path) : namespace + path })
  }
}

const TARGETS = PORTS.length + FILES.length

function targetAt(index: number, address: string): Target {
  const port = PORTS[index]
  return port === undefined
    ? { address: FILES[index - PORTS.length] as string, port: 0, family: UNIX }
    : { address, port, family: 4 }
}

function isShared({ port }: Target): boolean {
  return port === SHARED_PORT
}

/** In the rendezvous folder. */
function nameOf({ address, port, family }: Target): string {
  if (family !== UNIX) return listenerName(address, port)
  const { dev, ino } = fileOfKey(address) as { dev: string; ino: string }
  return unixListenerName(dev, ino)
}

function addressOf(namespace: number): string {
  return `10.9.0.${namespace + 1}`
}

function placeOf({ address, port }: Omit<Target, 'family'>): string {
  return `${address}:${port}`
}

function textOf({ code, text }: FallbackReason): string {
  return `${code}: ${text}`
}
