/** One simulated process with the daemon of the name service: its store, rules, watches and HTTP, on a simulated disk and network. */
import http from 'node:http'
import type { Socket } from 'node:net'
import { HttpHandler } from '../../nameservice/daemon/http-handler.ts'
import { makeOperations } from '../../nameservice/daemon/operations.ts'
import { unixPrincipal } from '../../nameservice/daemon/principal.ts'
import { Registrar } from '../../nameservice/daemon/registrar.ts'
import { type Limits, SETTINGS_SCHEMA } from '../../nameservice/daemon/settings-schema.ts'
import { TokenBuckets } from '../../nameservice/daemon/token-bucket.ts'
import { WatchHub } from '../../nameservice/daemon/watch-hub.ts'
import { LocalStore } from '../../nameservice/store/local-store.ts'
import type { FaultRandom } from '../../nic/fault/fault-random.ts'
import type { SimulatedHost, SimulatedKernels, SimulatedNetwork } from '../../nic/simulated/index.ts'
import { Broken } from './ledger.ts'
import type { NamesDisk } from './names-disk.ts'
import { ProgramSockets } from './program-sockets.ts'
import type { Player } from './world.ts'

/** Where clients find the daemon: the socket of one host, and over TCP. */
export const SOCKET_PATH = '/run/named'
export const TCP_PLACE = '10.9.9.9:7411'
/** Short: watchers fall behind. */
const HISTORY = 64
/** Refusals that requests of the programs here may meet. */
const EXPECTED: ReadonlySet<string> = new Set([
  'name-held',
  'no-such-lease',
  'no-such-name',
  'behind',
  'store-unavailable',
  'stopping',
  // A pause or a partition holds a body back for longer than the limit; its client asks again.
  'request-timeout',
])

const LIMITS = Object.fromEntries(
  Object.entries(SETTINGS_SCHEMA.properties.limits.properties).map(([name, schema]) => [
    name,
    schema.default,
  ]),
) as Limits

/** Two owners, each of half of the processes. */
export function ownerOf(host: SimulatedHost): number {
  return 1000 + (host.number % 2)
}

export class NamesDaemon implements Player {
  readonly number: number
  readonly host: SimulatedHost
  readonly isWaiting = true
  fault: unknown
  readonly store: LocalStore
  readonly hub: WatchHub
  readonly #server: http.Server
  readonly #sockets: ProgramSockets
  readonly #callers = new WeakMap<Socket, SimulatedHost>()
  readonly #connections = new Set<Socket>()
  #isStopping = false

  private constructor(
    network: SimulatedNetwork,
    kernels: SimulatedKernels,
    host: SimulatedHost,
    disk: NamesDisk,
    random: FaultRandom,
  ) {
    const { clock } = host
    this.number = host.number
    this.host = host
    this.#sockets = new ProgramSockets(kernels, host)
    const fail = (error: unknown): void => {
      this.fault ??= error
    }
    this.store = new LocalStore({
      journal: disk.journalOf(host, random),
      observer: {
        handleState() {},
        handleCommit() {},
        handleExpired() {},
        handleQuarantine: reason => fail(new Broken(`the store was put aside: ${reason}`)),
      },
      history: HISTORY,
      clock,
      newId: () => network.newIdentity().toString('hex').slice(16),
    })
    const { log } = this.store
    this.hub = new WatchHub(log, LIMITS, { handleEvents() {}, handleBehind() {} }, undefined, clock)
    const handler = new HttpHandler({
      operations: makeOperations({
        store: this.store,
        registrar: new Registrar(this.store, LIMITS),
        hub: this.hub,
        unreadiness: () => [],
        metrics: async () => ({ text: '', mediaType: '' }),
        pageAddress: () => undefined,
        openApi: () => '',
      }),
      limits: LIMITS,
      buckets: new TokenBuckets(LIMITS.requestsPerSecond),
      observer: {
        handleAnswer() {},
        handleRefusal: (operation, { code, message }) => {
          const isTaken = code === 'forbidden' && operation === 'deregisterName'
          if (!EXPECTED.has(code) && !isTaken) fail(new Broken(`${operation} is refused: ${message}`))
        },
        handleInternalError: (_operation, error) => fail(error),
      },
      freshness: () => ({ 'fastsockets-cursor': log.head }),
      isStopping: () => this.#isStopping,
      clock,
    })
    this.#server = new http.Server((request, response) => {
      const caller = this.#callers.get(request.socket) as SimulatedHost
      const credentials = { uid: ownerOf(caller), pid: caller.number + 1 }
      handler.handle(request, response, () => unixPrincipal(credentials, new Set(), undefined))
    })
  }

  /** Resolves when clients can reach it: after the daemon before it has left the store. */
  static async open(
    network: SimulatedNetwork,
    kernels: SimulatedKernels,
    host: SimulatedHost,
    disk: NamesDisk,
    random: FaultRandom,
  ): Promise<NamesDaemon> {
    const daemon = new NamesDaemon(network, kernels, host, disk, random)
    await daemon.store.open()
    for (const place of [SOCKET_PATH, TCP_PLACE])
      if (!daemon.#sockets.listen(place, (socket, caller) => daemon.#accept(socket, caller), true))
        throw new Broken(`${place} is taken`)
    return daemon
  }

  get isAlive(): boolean {
    return this.host.state !== 'dead' && !this.#isStopping
  }

  act(): void {}

  /** As the daemon stops: watchers get a `goodbye`, requests under way are answered, leases stay. */
  async close(): Promise<void> {
    this.#isStopping = true
    for (const place of [SOCKET_PATH, TCP_PLACE]) this.#sockets.unlisten(place)
    this.hub.close()
    await this.store.close()
    this.host.clock.setImmediate(() => {
      for (const socket of this.#connections) socket.destroy()
    })
  }

  #accept(socket: Socket, caller: SimulatedHost): void {
    if (this.#isStopping) return void socket.destroy()
    this.#callers.set(socket, caller)
    this.#connections.add(socket)
    socket.once('close', () => this.#connections.delete(socket))
    this.#server.emit('connection', socket)
  }
}
