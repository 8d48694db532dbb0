/** The peers of a client: a fixed list, or all whose published names begin with a prefix. */
import type { Subscription } from 'rxjs'
import type { Endpoint } from '../endpoint.ts'
import { threadNames } from '../thread-names.ts'
import { type PeerEvent, RemoteService } from './remote-service.ts'
import { rpcError } from './rpc-error.ts'
import type { Service } from './service.ts'

export interface PeersOptions {
  readonly choose: 'in-turn' | 'fewest-under-way'
  readonly tag: bigint | undefined
  readonly onPeer: ((event: PeerEvent) => void) | undefined
  /** There is one peer, by its name or destination: calls connect it anew. */
  readonly isAlone: boolean
  /** Calls go to all peers. */
  readonly isEach: boolean
}

export class Peers {
  private readonly endpoint: Endpoint
  private readonly service: Service
  private readonly options: PeersOptions
  private readonly all = new Map<string | number, RemoteService>()
  private watching: Subscription | undefined
  private turn = 0
  private isClosed = false

  constructor(endpoint: Endpoint, service: Service, options: PeersOptions) {
    this.endpoint = endpoint
    this.service = service
    this.options = options
  }

  /** Resolves when one peer is connected, or with `isEach` all of a fixed list that can be; rejects if none can be. */
  async begin(wanted: readonly (string | number)[] | string): Promise<void> {
    if (typeof wanted === 'string') return await this.watch(wanted)
    if (wanted.length === 0) throw rpcError('ERR_RPC_ARGUMENT', 'there is no peer to call')
    const tries = wanted.map(peer => this.add(peer).connect())
    if (this.options.isAlone) return void (await tries[0])
    for (const [i, attempt] of tries.entries()) {
      attempt.catch(() => this.all.get(wanted[i] as string | number)?.connectLater())
    }
    try {
      await Promise.any(tries)
      if (this.options.isEach) await Promise.allSettled(tries)
    } catch (error) {
      throw (error as AggregateError).errors[0]
    }
  }

  up(): RemoteService[] {
    return [...this.all.values()].filter(({ isUp }) => isUp)
  }

  /** The peer for the next call. Throws if all are down. */
  choose(): RemoteService {
    if (this.options.isAlone && !this.isClosed) return this.all.values().next().value as RemoteService
    const up = this.up()
    if (up.length === 0) {
      const why = this.isClosed ? 'the client is closed' : `none of ${this.all.size} peers is up`
      throw rpcError('ERR_RPC_UNAVAILABLE', why, { reason: this.isClosed ? 'CLOSED' : 'NO_PEER' })
    }
    if (this.options.choose === 'fewest-under-way') {
      return up.reduce((best, peer) => (peer.underWay < best.underWay ? peer : best))
    }
    this.turn++
    return up[this.turn % up.length] as RemoteService
  }

  close(): void {
    this.isClosed = true
    this.watching?.unsubscribe()
    for (const peer of this.all.values()) peer.close()
    this.all.clear()
  }

  private add(peer: string | number): RemoteService {
    const { tag } = this.options
    const added = new RemoteService(this.endpoint, peer, this.service.name, tag, event =>
      this.handleEvent(event),
    )
    this.all.set(peer, added)
    return added
  }

  /** The name is gone, perhaps before the end of the connection is seen. */
  private remove(name: string): void {
    const peer = this.all.get(name)
    this.all.delete(name)
    const wasUp = peer?.isUp
    peer?.close()
    if (wasUp) this.options.onPeer?.({ type: 'down', peer: name, reason: 'NO_NAME' })
  }

  private handleEvent(event: PeerEvent): void {
    if (event.type === 'down' && !this.options.isAlone) this.all.get(event.peer)?.connectLater()
    this.options.onPeer?.(event)
  }

  /** Follows the names that begin with the text before the star. Resolves when the first of them is connected. */
  private async watch(pattern: string): Promise<void> {
    if (!pattern.endsWith('*')) {
      throw rpcError(
        'ERR_RPC_ARGUMENT',
        `${JSON.stringify(pattern)} must end with *, or be an array of names`,
      )
    }
    const prefix = pattern.slice(0, -1)
    const names = await threadNames()
    await new Promise<void>((resolve, reject) => {
      const connect = (name: string): void => {
        if (this.isClosed || this.all.has(name)) return
        const peer = this.add(name)
        peer.connect().then(
          () => resolve(),
          () => peer.connectLater(),
        )
      }
      const list = async (): Promise<void> => {
        const { entries } = await names.list(prefix)
        for (const { name } of entries) connect(name)
      }
      this.watching = names.watch$(prefix).subscribe({
        next: event => {
          if (event.type === 'up') list().catch(reject)
          else if (event.type === 'put') connect(event.name)
          else if (event.type === 'delete') this.remove(event.name)
        },
        error: reject,
        complete: () => reject(rpcError('ERR_RPC_UNAVAILABLE', 'the client of the name service is closed')),
      })
    })
  }
}
