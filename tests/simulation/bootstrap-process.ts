/**
 * One simulated process with listeners that have a bootstrap, and clients that search for those of others. It also holds hashed
 * ports as a stranger would.
 */
import type net from 'node:net'
import {
  callHashedPort,
  type Greeted,
  Race,
  shakeHands,
} from '../../fastsockets/bootstrap/bootstrap-client.ts'
import {
  encodeEarly,
  encodeIntroduction,
  GREETING_MAGIC,
  type Introduction,
  NO_ID,
  REFUSAL,
  VERSION,
} from '../../fastsockets/bootstrap/bootstrap-layout.ts'
import { type BootstrapHost, BootstrapServer } from '../../fastsockets/bootstrap/bootstrap-server.ts'
import { CANDIDATE_COUNT, hashedPort } from '../../fastsockets/bootstrap/hashed-port.ts'
import type { Reply } from '../../fastsockets/bootstrap/hello-callers.ts'
import type { Kernel } from '../../fastsockets/bootstrap/kernel.ts'
import { endsOf, transcriptOf } from '../../fastsockets/bootstrap/transcript.ts'
import { type FallbackReason, fallbackReason } from '../../fastsockets/reasons.ts'
import type { FaultRandom } from '../../nic/fault/fault-random.ts'
import type { Driver } from '../../nic/index.ts'
import {
  type SimulatedHost,
  SimulatedKernels,
  type SimulatedNetwork,
  simulatedDriver,
} from '../../nic/simulated/index.ts'
import { Broken } from './ledger.ts'
import { programKernel, programPorts } from './program-kernel.ts'
import { ProgramSockets } from './program-sockets.ts'
import type { Player } from './world.ts'

/** The listeners of the system: addresses that any process may have, and ports. */
const ADDRESSES = ['10.9.0.1', '10.9.0.2', '10.9.0.3']
const PORTS = [80, 8080, 5000]
/** The defaults, whatever the environment says. */
const GREETING_MS = 80
const ANSWER_MS = 1000
const CALLS_MAX = 6
const QUEUE_SIZE = 64 * 1024
const NO_FINAL_CALLS = -1

/** What a stranger does with a caller. */
const STRANGERS = [
  'silent',
  'hangs up',
  'babbles',
  'other listener',
  'other version',
  'half',
  'poses',
  'early',
] as const

interface Listener {
  readonly address: string
  readonly port: number
  readonly bootstrap: BootstrapServer
}

/** A connection that a client has come to. */
interface Found {
  readonly transcript: Buffer
  readonly connection: net.Socket
}

/** What servers have agreed to, by transcript. */
export type Agreed = Map<string, { readonly address: string; readonly port: number }>

export class BootstrapProcess implements Player {
  readonly number: number
  readonly host: SimulatedHost
  readonly isWaiting = true
  fault: unknown
  isOver = false
  isSettled = false
  /** Searches that have found their listener, and that have not. */
  found = 0
  missed = 0
  readonly listeners = new Map<string, Listener>()
  readonly #sockets: ProgramSockets
  readonly #driver: Driver
  readonly #kernel: Kernel
  readonly #random: FaultRandom
  readonly #agreed: Agreed
  readonly #id: Buffer
  readonly #network: SimulatedNetwork
  readonly #squatted = new Set<string>()
  /** Connections that this process has agreed to as a server. */
  readonly #held = new Set<net.Socket>()
  #underWay = 0
  /** Searches since faults have ended that are not over. */
  #finalCalls = NO_FINAL_CALLS

  constructor(
    network: SimulatedNetwork,
    kernels: SimulatedKernels,
    host: SimulatedHost,
    random: FaultRandom,
    agreed: Agreed,
  ) {
    this.number = host.number
    this.host = host
    this.#network = network
    this.#random = random
    this.#agreed = agreed
    this.#id = network.newIdentity()
    this.#sockets = new ProgramSockets(kernels, host)
    this.#driver = simulatedDriver(network, host, QUEUE_SIZE)
    // Listeners and clients meet as those of two hosts do.
    const { host: address } = SimulatedKernels.addressOf(host)
    this.#kernel = programKernel({
      network,
      host,
      sockets: this.#sockets,
      isOwnAddress: () => false,
      address,
    })
  }

  get isAlive(): boolean {
    return this.host.state !== 'dead' && !this.isOver
  }

  act(): void {
    const random = this.#random
    if (this.host.state !== 'running') return
    const dice = random.within(0, 99)
    const address = ADDRESSES[random.within(0, ADDRESSES.length - 1)] as string
    const port = PORTS[random.within(0, PORTS.length - 1)] as number
    if (dice < 10) this.#listen(address, port)
    else if (dice < 13) this.#close(placeOf(address, port))
    else if (dice < 18) this.#squat(placeOf(address, hashedPort(port, random.within(0, CANDIDATE_COUNT - 1))))
    else if (dice < 26) this.#leave()
    else if (this.#underWay < CALLS_MAX) this.#call(address, port)
  }

  async close(): Promise<void> {
    for (const place of [...this.listeners.keys()]) this.#close(place)
    this.settleDown()
    for (const connection of this.#held) connection.destroy()
  }

  /** It is no stranger to others any more, and refuses none. */
  settleDown(): void {
    this.isSettled = true
    while (this.#squatted.size > 0) this.#leave()
  }

  /** What is not as it must be, once nothing moves any more; undefined if all is. */
  findUnfinished(all: readonly Listener[]): string | undefined {
    if (this.#underWay > 0) return `${this.#underWay} searches of process ${this.number} go on`
    if (this.#finalCalls === NO_FINAL_CALLS) {
      this.#finalCalls = 0
      for (const { address, port, bootstrap } of all) if (bootstrap.isHashed) this.#callFinally(address, port)
      return 'the last searches have begun'
    }
    if (this.#finalCalls > 0) return `${this.#finalCalls} of the last searches go on`
    if (this.#held.size > 0)
      return `process ${this.number} keeps ${this.#held.size} connections of clients that have left`
    const { openCount } = this.#sockets
    return openCount === 0
      ? undefined
      : `process ${this.number} keeps ${openCount} connections of its searches`
  }

  #listen(address: string, port: number): void {
    const place = placeOf(address, port)
    if (!this.#sockets.listen(place, socket => socket.destroy())) return
    const where = {
      id: this.#network.newIdentity(),
      address,
      port,
      family: 4,
      isRequired: false,
      ipv6Only: false,
      isPortShared: false,
    } as const
    const bootstrap = BootstrapServer.open(where, this.#bootstrapHost(address), new Set())
    if (bootstrap === undefined) return this.#sockets.unlisten(place)
    this.listeners.set(place, { address, port, bootstrap })
  }

  #close(place: string): void {
    const listener = this.listeners.get(place)
    if (listener === undefined) return
    this.listeners.delete(place)
    this.#sockets.unlisten(place)
    listener.bootstrap.close()
  }

  #bootstrapHost(address: string): BootstrapHost {
    return {
      introduce: port => this.#introduce(port),
      openDoor: () => undefined,
      answer: hello => this.#answer(address, hello),
      kernel: this.#kernel,
      network: programPorts(this.#sockets),
    }
  }

  #introduce(port: number): Introduction {
    const { number } = this
    const hostIdentity = Buffer.alloc(16, number + 1)
    const flags = { isShared: false, isRequired: false }
    return {
      version: VERSION,
      port,
      ...flags,
      endpointId: this.#id,
      hostIdentity,
      uid: 1000,
      pid: number + 1,
      door: NO_ID,
      listenerId: NO_ID,
    }
  }

  #answer(address: string, { port }: Introduction): Reply {
    if (!this.isSettled && this.#random.chance(0.05)) return { refusal: REFUSAL.LIMIT }
    const offer = this.#driver.offer()
    offer.accepted.then(
      end => end.close(),
      () => {},
    )
    return {
      driver: this.#driver.name,
      blob: offer.blob,
      finish: (connection, transcript) => {
        this.#agreed.set(transcript.toString('hex'), { address, port })
        this.#held.add(connection)
        connection.on('close', () => this.#held.delete(connection))
        connection.resume()
      },
    }
  }

  #squat(place: string): void {
    const kind = STRANGERS[this.#random.within(0, STRANGERS.length - 1)]
    const isThere = this.#sockets.listen(place, caller => {
      caller.on('error', () => {})
      caller.on('end', () => caller.destroy())
      caller.resume()
      const port = PORTS.find(one => place.endsWith(`:${one}`) || isHashOf(place, one)) as number
      const greeting = encodeIntroduction(GREETING_MAGIC, this.#introduce(port))
      if (kind === 'hangs up') caller.destroy()
      else if (kind === 'babbles') caller.write('220 ready\r\n')
      else if (kind === 'other listener') caller.write(encodeIntroduction(GREETING_MAGIC, this.#introduce(1)))
      else if (kind === 'other version') {
        greeting.writeUInt16LE(VERSION + 1, GREETING_MAGIC.length)
        caller.write(greeting)
      } else if (kind === 'half') caller.write(greeting.subarray(0, this.#random.within(1, 95)))
      else if (kind === 'early') caller.write(encodeEarly(port))
      else if (kind === 'poses') {
        caller.write(greeting)
        caller.on('data', () => caller.write('FSANSWER and more'))
      }
    })
    if (isThere) this.#squatted.add(place)
  }

  #leave(): void {
    const [place] = this.#squatted
    if (place === undefined) return
    this.#squatted.delete(place)
    this.#sockets.unlisten(place)
  }

  #callFinally(address: string, port: number): void {
    this.#finalCalls++
    this.#call(address, port, reason => {
      this.#finalCalls--
      if (reason !== undefined)
        throw new Broken(`process ${this.number} does not find ${placeOf(address, port)}: ${reason.code}`)
    })
  }

  #call(address: string, port: number, onOver = (_reason: FallbackReason | undefined): void => {}): void {
    const race = new Race()
    const sockets = this.#sockets
    this.#underWay++
    callHashedPort<Found>(
      { address, port, family: 4 },
      function (options) {
        return sockets.connect(this, options)
      },
      race,
      greeted => this.#follow(greeted, race),
      GREETING_MS,
      this.#kernel,
    )
      .then(outcome => {
        this.#underWay--
        if ('code' in outcome) {
          this.missed++
          return onOver(outcome)
        }
        this.found++
        const { transcript, connection } = outcome
        connection.destroy()
        const agreed = this.#agreed.get(transcript.toString('hex'))
        if (agreed?.address !== address || agreed.port !== port)
          throw new Broken(`process ${this.number} calls ${placeOf(address, port)}, and reaches another`)
        onOver(undefined)
      })
      .catch(error => {
        if (this.isAlive) this.fault ??= error
      })
  }

  /** As `Peers` does from a greeting of another host on. */
  async #follow({ connection, greeting, bytes }: Greeted, race: Race): Promise<Found | FallbackReason> {
    const { listenerId } = greeting
    const hello = { ...this.#introduce(greeting.port), listenerId }
    const shaken = await shakeHands(connection, hello, ANSWER_MS, this.host.clock)
    if (shaken === undefined) return fallbackReason('HANDSHAKE')
    const { answer, helloBytes, answerBytes } = shaken
    if (answer.result !== 0) {
      connection.destroy()
      return fallbackReason('LIMIT')
    }
    try {
      const end = await this.#driver.connect(answer.blob)
      end.close()
    } catch {
      connection.destroy()
      return fallbackReason('HANDSHAKE')
    }
    const exchanged = { greeting: bytes, hello: helloBytes, answer: answerBytes }
    const transcript = transcriptOf(exchanged, endsOf(connection, 'client'))
    if (race.win(connection)) return { transcript, connection }
    connection.destroy()
    return fallbackReason('HANDSHAKE')
  }
}

function placeOf(address: string, port: number): string {
  return `${address}:${port}`
}

function isHashOf(place: string, port: number): boolean {
  for (let candidate = 0; candidate < CANDIDATE_COUNT; candidate++)
    if (place.endsWith(`:${hashedPort(port, candidate)}`)) return true
  return false
}
