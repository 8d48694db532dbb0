/** The daemon as a whole: builds, starts, reloads and stops its parts. */
import type { Refusal } from '../problem.ts'
import type { Store, StoreObserver, StoreState } from '../store/store.ts'
import type { DaemonLog } from './daemon-log.ts'
import { type DaemonPage, type MakePage, viewOf } from './daemon-page.ts'
import { HttpHandler, type HttpObserver, NO_OPERATION, UNKNOWN_CALLER } from './http-handler.ts'
import { Listeners } from './listeners.ts'
import { Metrics } from './metrics.ts'
import { openApiDocument } from './openapi.ts'
import { makeOperations } from './operations.ts'
import { Registrar } from './registrar.ts'
import { SettingsError } from './settings.ts'
import type { Settings } from './settings-schema.ts'
import { makeStore } from './store-choice.ts'
import { keepHeapSmall } from './system/heap.ts'
import { passedSockets, ServiceManager } from './system/service-manager.ts'
import { TokenBuckets } from './token-bucket.ts'
import { WatchHub, type WatchObserver } from './watch-hub.ts'

export interface DaemonOptions {
  readonly settings: Settings
  readonly log: DaemonLog
  /** Version of the package, for the OpenAPI document. */
  readonly version: string
  /** Makes what the daemon serves at `/` on a TCP port of loopback; left out, nothing is there. */
  readonly makePage?: MakePage
}

const NO_SOCKET = 'none'

export class Daemon implements StoreObserver, HttpObserver, WatchObserver {
  readonly #settings: Settings
  readonly #log: DaemonLog
  readonly #logsAnswers: boolean
  readonly #store: Store
  readonly #hub: WatchHub
  readonly #handler: HttpHandler
  readonly #listeners: Listeners
  readonly #metrics: Metrics
  readonly #page: DaemonPage | undefined
  readonly #serviceManager = new ServiceManager()
  readonly #passed = passedSockets()
  #isListening = false
  #isStopping = false

  constructor({ settings, log, version, makePage }: DaemonOptions) {
    this.#settings = settings
    this.#log = log
    this.#logsAnswers = log.isLevelEnabled('debug')
    this.#store = makeStore(settings, this)
    const { image, log: changes } = this.#store
    this.#hub = new WatchHub(changes, settings.limits, this)
    this.#metrics = new Metrics(() => ({
      names: image.nameCount,
      leases: image.leaseCount,
      watchers: this.#hub.count,
      connections: this.#listeners.connections.count,
      revision: changes.revision,
      isStoreReady: this.#store.state === 'ready',
    }))
    this.#page = makePage?.(() => viewOf(image, this.#hub))
    let openApi: string | undefined
    const operations = makeOperations({
      store: this.#store,
      registrar: new Registrar(this.#store, settings.limits),
      hub: this.#hub,
      unreadiness: () => this.#unreadiness(),
      metrics: () => this.#metrics.print(),
      pageAddress: () => this.#listeners.pageAddress,
      openApi: () => (openApi ??= JSON.stringify(openApiDocument(operations, version))),
    })
    const buckets = new TokenBuckets(settings.limits.requestsPerSecond)
    this.#handler = new HttpHandler({
      operations,
      limits: settings.limits,
      buckets,
      observer: this,
      freshness: () =>
        this.#store.isStale
          ? { 'fastsockets-cursor': changes.head, 'fastsockets-stale': 'true' }
          : { 'fastsockets-cursor': changes.head },
      isStopping: () => this.#isStopping,
    })
    this.#listeners = new Listeners({
      settings,
      handler: this.#handler,
      buckets,
      page: this.#page,
      onLost: ({ message: reason }) => log.error({ reason }, 'a caller could not be accepted'),
      onRefused: refusal => this.handleRefusal(NO_OPERATION, refusal, UNKNOWN_CALLER),
    })
  }

  /** Throws a `SettingsError`, a `StoreError` or a `SocketFileError` if the daemon cannot start. */
  async start(): Promise<void> {
    const startMs = performance.now()
    await this.#listeners.readSecrets()
    await this.#store.open()
    // After the store is open: with a small heap, V8 would collect again and again while the store is read.
    keepHeapSmall()
    try {
      await this.#listen()
    } catch (error) {
      // Listeners that are open already would keep the process alive.
      await this.#close()
      throw error
    }
    this.#isListening = true
    const { nameCount: names, leaseCount: leases } = this.#store.image
    const durationMs = Math.round(performance.now() - startMs)
    this.#log.info({ names, leases, store: this.#settings.store.kind, durationMs }, 'ready')
    if (!this.#serviceManager.notifyReady(`${names} names`)) {
      this.#log.error(
        `the service manager cannot be notified: ${this.#listeners.credentialsReason ?? 'no answer'}`,
      )
    }
    void this.#handler.prepare()
  }

  /** Reads tokens and certificates again. If they are invalid, the daemon logs the reason and keeps the old ones. */
  async reload(): Promise<void> {
    this.#serviceManager.notifyReloading()
    try {
      await this.#listeners.reload()
      this.#hub.endThoseOf(owner => owner.startsWith('token:'))
      this.#log.info('tokens and certificates are read anew')
    } catch (error) {
      const reason = error instanceof SettingsError ? error.message : 'they cannot be used'
      this.#log.error({ reason }, 'tokens and certificates stay as they were')
    }
    this.#serviceManager.notifyReloaded(`${this.#store.image.nameCount} names`)
  }

  /** Stops: watchers get a `goodbye`, requests under way are answered, and leases stay for the next daemon. */
  async stop(reason: string): Promise<void> {
    if (this.#isStopping) return
    this.#isStopping = true
    this.#log.info({ reason }, 'stopping')
    this.#serviceManager.notifyStopping()
    await this.#close()
    this.#log.info({ names: this.#store.image.nameCount }, 'stopped')
  }

  handleState(state: StoreState, reason: string): void {
    if (state === 'ready') this.#log.info({ reason }, 'store is ready')
    else {
      this.#metrics.storeFailures.inc()
      this.#log.error({ reason }, 'store is unavailable: nothing can be changed, look-ups are answered')
    }
    this.#serviceManager.notifyStatus(state === 'ready' ? 'ready' : `store is unavailable: ${reason}`)
  }

  handleCommit(changes: number, durationMs: number): void {
    this.#metrics.handleCommit(changes, durationMs)
  }

  handleExpired(leases: number): void {
    this.#metrics.expired.inc(leases)
    this.#log.info({ leases }, 'leases have expired')
  }

  handleQuarantine(reason: string): void {
    this.#metrics.quarantines.inc()
    this.#log.error({ reason }, 'the store was put aside, and an empty one begun; clients will register anew')
  }

  handleAnswer(operation: string, status: number, durationMs: number): void {
    this.#metrics.handleAnswer(operation, status, durationMs)
    if (this.#logsAnswers) this.#log.debug({ operation, status, durationMs }, 'answered')
  }

  handleRefusal(operation: string, { code, message }: Refusal, caller: string): void {
    this.#metrics.handleRefusal(code)
    this.#log.debug({ operation, caller, problem: code, detail: message }, 'refused')
  }

  handleInternalError(operation: string, { name, message, stack }: Error): void {
    this.#metrics.handleRefusal('internal')
    this.#log.error({ operation, name, message, stack }, 'internal error')
  }

  handleEvents(count: number): void {
    this.#metrics.events.inc(count)
  }

  handleBehind(): void {
    this.#metrics.behind.inc()
    this.#log.debug('a watcher was too far behind')
  }

  async #close(): Promise<void> {
    this.#hub.close()
    this.#page?.close()
    await this.#listeners.close()
    await this.#store.close()
  }

  async #listen(): Promise<void> {
    const { socket, tcp } = this.#settings
    const reason = this.#listeners.credentialsReason
    if (reason !== undefined) {
      this.#log.error(
        { reason },
        'callers over the unix socket cannot be known: they may ask, but not change',
      )
    }
    if (this.#passed.length === 0 && socket.path === NO_SOCKET && tcp.listen === '') {
      throw new SettingsError('socket.path and tcp.listen: there is nothing to listen on')
    }
    for (const fd of this.#passed) {
      await this.#listeners.listenPassed(fd)
      this.#log.info({ fd }, 'listening on a socket that was passed')
    }
    if (this.#passed.length === 0 && socket.path !== NO_SOCKET) {
      await this.#listeners.listenUnix(socket.path, Number.parseInt(socket.mode, 8))
      this.#log.info({ socket: socket.path }, 'listening')
    }
    if (tcp.listen !== '') {
      const port = await this.#listeners.listenTcp()
      this.#log.info({ listen: tcp.listen, port, tls: tcp.certificate !== '' }, 'listening')
    }
  }

  #unreadiness(): string[] {
    const reasons: string[] = []
    if (!this.#isListening) reasons.push('the daemon is starting')
    if (this.#isStopping) reasons.push('the daemon is stopping')
    if (this.#store.state !== 'ready') reasons.push('the store is unavailable')
    return reasons
  }
}
