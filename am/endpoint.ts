/**
 * Active messages after Mainwaring and Culler (1995): an endpoint has a name, a tag, a handler table, a
 * translation table, and a segment. am/README.md states the guarantees.
 */

import type { Observable } from 'rxjs'
import { type Clock, nextTurnOf } from '../nic/clock.ts'
import { assertMayUseNetwork, OK, openLoopbackPair, type Status } from '../nic/index.ts'
import { Call, checkWait, type WaitOptions, within } from './call.ts'
import { ChannelGroup } from './channel-group.ts'
import type { EndpointChannel } from './endpoint-channel.ts'
import { AmError, closedError, rangeError, typeError } from './errors.ts'
import type { Handler, HandlerTable } from './handler-table.ts'
import { type Mapping, NO_DESTINATION } from './mapping.ts'
import { HANDLER_COUNT } from './message-layout.ts'
import { type CheckedOptions, checkOptions, type EndpointLimits, type EndpointOptions } from './options.ts'
import { assertPayload } from './payload.ts'
import type { Peer } from './peer.ts'
import { PeerTable } from './peer-table.ts'
import { PollLoop } from './poll-loop.ts'
import { locate, type Publication, publishName } from './published-names.ts'
import { endSources } from './reactive/message-source.ts'
import { messageStream } from './reactive/message-stream.ts'
import { ReadyWaiters } from './ready-waiters.ts'
import type { ReceivedMessage } from './received-message.ts'
import { assertDestination, refuseDestination, refuseHandler, refuseInHandler } from './refusals.ts'
import { type EndpointName, encodeName } from './rendezvous/endpoint-name.ts'
import { openToOthers, remoteRendezvous } from './rendezvous/remote-rendezvous.ts'
import { type Listening, listenAt } from './rendezvous/tcp-rendezvous.ts'
import { running } from './returning-channel.ts'
import { type Runtime, threadRuntime } from './runtime.ts'
import { assertGet, assertRegion, Segment } from './segment.ts'
import { type EndpointStats, statsOf } from './stats.ts'
import { type Tag, tagOf } from './tag.ts'
import { UNDELIVERABLE } from './undeliverable.ts'
import { Words } from './words.ts'

/** Smallest size of a ring, for a channel without a peer: no frame is ever in it. */
const UNREACHABLE_RING_SIZE = 64 * 1024
/** Messages that one `poll` handles for each peer. */
const POLL_LIMIT_DEFAULT = 256
/** Segment of a channel without a peer. */
const NO_SEGMENT = new Segment(0)

/** Words of the message being sent. One object is enough, because sending does not wait. */
const words = new Words()

/**
 * Opens an endpoint, which peers can map by its name from then on. `runtime`: of a simulated process; by default the
 * thread's own.
 */
export async function openEndpoint(
  options: EndpointOptions = {},
  runtime = threadRuntime,
): Promise<Endpoint> {
  const checked = checkOptions(options)
  assertMayUseNetwork()
  const listening = checked.listen && (await listenAt(checked.listen))
  const endpoint = new Endpoint(checked, runtime.newName(listening?.address), listening, runtime)
  await endpoint.begin()
  return endpoint
}

/** One entry of the translation table, with its conversation. */
export interface Destination extends Mapping {
  /** Undefined if no endpoint answered to the name. */
  readonly peer: Peer | undefined
  readonly channel: EndpointChannel
}

export class Endpoint {
  /** Opaque and global: any process that a driver reaches may map it. */
  readonly name: string
  readonly limits: EndpointLimits
  readonly #id: EndpointName
  readonly #segment: Uint8Array
  readonly #listening: Listening | undefined
  readonly #options: CheckedOptions
  readonly #runtime: Runtime
  readonly #group: ChannelGroup
  readonly #peers: PeerTable
  readonly #mappings: (Destination | undefined)[] = []
  readonly #pollLoop: PollLoop
  readonly #waiters = new ReadyWaiters()
  /** Count of handlers that had run when the first of the current waiters began to wait. */
  #runsBefore = 0
  #isReferenced: boolean
  #publication: Promise<Publication> | undefined
  #closing: Promise<void> | undefined

  /** Use `openEndpoint`. */
  constructor(options: CheckedOptions, id: EndpointName, listening: Listening | undefined, runtime: Runtime) {
    const segment = new Segment(options.segment, options.drivers, options.segmentAccess)
    this.#id = id
    this.#listening = listening
    this.#options = options
    this.#runtime = runtime
    this.#pollLoop = new PollLoop(runtime.clock)
    this.name = encodeName(id)
    this.#segment = segment.bytes
    this.limits = options.limits
    this.#isReferenced = options.progress === 'event-loop'
    const wake = (): void => this.#wakeWaiters()
    const { eventLoop } = runtime
    this.#group = new ChannelGroup({ progress: options.progress, onWake: wake, eventLoop })
    this.#peers = new PeerTable(id, options, segment, this.#group, wake, runtime)
  }

  /**
   * Memory that peers write to with long messages and read with gets. Not enumerable: programs that print an endpoint
   * would print every byte. Undefined for copies.
   */
  get segment(): Uint8Array {
    return #segment in this ? this.#segment : (undefined as never)
  }

  /** For am/rpc: the conversation with the peer of a destination, and the mapping to show it. */
  static destinationOf(endpoint: Endpoint, destination: number): Destination {
    return endpoint.#mappingOf(destination)
  }

  /** For am/rpc: as `map`, but beside the translation table, whose entries are all the program's. `unmapApart` ends it. */
  static async mapApart(endpoint: Endpoint, name: string, tag?: bigint): Promise<Destination> {
    endpoint.#assertOpen()
    assertMayUseNetwork()
    const found = await locate(name, endpoint.#options.preferred)
    const shown = tag ?? found.tag
    const base = { index: NO_DESTINATION, name, tag: tagOf(shown) }
    let mapping: Destination | undefined
    await endpoint.#peers.find(found, shown, (peer, segment) => {
      endpoint.#assertOpen()
      endpoint.#peers.addMapping(peer, NO_DESTINATION)
      mapping = { ...base, peer, channel: peer.channel, segment }
    })
    return mapping as Destination
  }

  static unmapApart(endpoint: Endpoint, { peer, channel }: Destination): void {
    if (endpoint.#closing !== undefined || peer === undefined) return
    channel.waiters.wake() // the channel may end now
    endpoint.#peers.removeMapping(peer, NO_DESTINATION)
  }

  /** For am/rpc: the handler table, and the tag that peers must show. */
  static tableOf(endpoint: Endpoint): {
    readonly handlers: HandlerTable
    readonly tag: Tag
    readonly clock: Clock
  } {
    endpoint.#assertOpen()
    return {
      handlers: endpoint.#group.handlers,
      tag: endpoint.#options.tagWords,
      clock: endpoint.#runtime.clock,
    }
  }

  /** For `openEndpoint` only. */
  async begin(): Promise<void> {
    try {
      await this.#runtime.rendezvous.open(this.#id.endpoint, this.#peers)
    } catch (error) {
      this.#listening?.close()
      throw error
    }
    this.#listening?.serve(this.#id, this.#peers)
    this.#keepAlive()
    const { name, tag, drivers } = this.#options
    if (name === undefined) return
    const remote = openToOthers(drivers, this.#id.endpoint, this.#peers)
    this.#publication = remote.then(remote => publishName({ name, endpoint: this.#id, tag, drivers, remote }))
    await this.#publication.catch(error => this.close().then(() => Promise.reject(error)))
  }

  /** Handlers 1..255 run for messages, handler 0 for messages that come back. May be called in a handler. */
  setHandler(index: number, handler: Handler | undefined): void {
    this.#assertOpen()
    this.#group.setHandler(index, handler)
  }

  /**
   * Maps `destination` to the endpoint of that name: its own name, `tcp:HOST:PORT` if it listens there, or a name that
   * it has published. `tag` is by default the published tag, otherwise 0. Rejects with `ERR_AM_NO_SUCH_ENDPOINT` if no
   * endpoint answers to the name. The destination is mapped even then, and messages sent to it come back with that
   * reason.
   */
  async map(destination: number, name: string, tag?: bigint): Promise<void> {
    this.#assertOpen()
    assertDestination(destination)
    if (typeof name !== 'string') throw typeError(`a name must be a string, not ${typeof name}`)
    assertMayUseNetwork()
    let shown = tagOf(tag === undefined ? 0n : tag)
    try {
      const found = await locate(name, this.#options.preferred)
      shown = tagOf(tag ?? found.tag)
      await this.#peers.find(found, tag ?? found.tag, (peer, segment) => {
        this.#install({ index: destination, name, tag: shown, peer, channel: peer.channel, segment })
      })
    } catch (error) {
      if ((error as AmError).code === 'ERR_AM_NO_SUCH_ENDPOINT' && this.#closing === undefined) {
        const channel = this.#openUnreachable(destination, name)
        const noPeer = { peer: undefined, channel, segment: undefined }
        this.#install({ index: destination, name, tag: shown, ...noPeer })
      }
      throw error
    }
  }

  /** Requests under way to the destination still arrive, or come back. */
  unmap(destination: number): void {
    this.#assertOpen()
    assertDestination(destination)
    this.#uninstall(destination)
  }

  /** Sends a short message: up to eight words of 32 bits. */
  request(destination: number, handler: number, ...words: number[]): Status
  request(
    destination: number,
    handler: number,
    a?: number,
    b?: number,
    c?: number,
    d?: number,
    e?: number,
    f?: number,
    g?: number,
    h?: number,
  ): Status {
    const mapping = this.#admit(destination, handler)
    // biome-ignore lint/complexity/noArguments: a rest parameter would make an array for every message
    words.set(arguments.length - 2, a, b, c, d, e, f, g, h)
    return mapping.channel.send(mapping, handler, words, undefined, undefined)
  }

  /** Sends a message with a payload, which is copied: the caller may reuse its memory on return. */
  requestMedium(destination: number, handler: number, payload: Uint8Array, ...words: number[]): Status
  requestMedium(
    destination: number,
    handler: number,
    payload: Uint8Array,
    a?: number,
    b?: number,
    c?: number,
    d?: number,
    e?: number,
    f?: number,
    g?: number,
    h?: number,
  ): Status {
    const mapping = this.#admit(destination, handler)
    assertPayload(payload, this.limits.medium)
    // biome-ignore lint/complexity/noArguments: a rest parameter would make an array for every message
    words.set(arguments.length - 3, a, b, c, d, e, f, g, h)
    return mapping.channel.send(mapping, handler, words, payload, undefined)
  }

  /**
   * Sends a message whose payload is put at `offset` in the peer's segment before its handler runs. The caller may
   * reuse the payload on return. If the message comes back, its payload is the caller's memory as it is at that
   * time.
   */
  requestLong(
    destination: number,
    handler: number,
    payload: Uint8Array,
    offset: number,
    ...rest: number[]
  ): Status {
    const mapping = this.#admit(destination, handler)
    assertPayload(payload, this.limits.long)
    assertRegion(offset, payload.length)
    words.setArray(rest)
    return mapping.channel.sendLong(mapping, handler, words, payload, offset)
  }

  /**
   * Fetches `length` bytes at `offset` of the peer's segment to `into` in our own, then runs our own handler with
   * the words. No handler of the peer runs.
   */
  get(
    destination: number,
    handler: number,
    offset: number,
    length: number,
    into: number,
    ...rest: number[]
  ): Status {
    const mapping = this.#admit(destination, handler)
    assertGet(offset, length, into, this.limits.long, this.#segment.length)
    words.setArray(rest)
    return mapping.channel.get(mapping, handler, words, offset, length, into)
  }

  /**
   * After a refusal: resolves when the same request may succeed. With manual progress the program must poll until
   * then.
   */
  async ready(destination: number, options: { readonly signal?: AbortSignal } = {}): Promise<void> {
    checkWait(options)
    // After a wait the destination may be mapped anew, or another waiter may have used the credit.
    while (!this.#mappingOf(destination).channel.isReady) {
      const { channel } = this.#mappingOf(destination)
      const waiter = channel.waiters.wait()
      channel.touch() // the poller may sleep, and no doorbell rings for this
      try {
        await within(waiter.promise, `destination ${destination}`, options, this.#runtime.clock)
      } finally {
        waiter.forget()
      }
    }
  }

  /** Sends a request and resolves with its reply, which runs no handler. Waits for credit and room itself. */
  call(
    destination: number,
    handler: number,
    payload?: Uint8Array,
    callWords: readonly number[] = [],
    options?: WaitOptions,
  ): Promise<ReceivedMessage> {
    try {
      if (options !== undefined) checkWait(options)
      if (payload !== undefined) assertPayload(payload, this.limits.medium)
      words.setArray(callWords)
      const mapping = this.#admit(destination, handler)
      const call = new Call(destination, handler)
      if (mapping.channel.send(mapping, handler, words, payload, call) !== OK) {
        const ownPayload = payload && new Uint8Array(payload)
        return this.#callLater(call, destination, handler, ownPayload, words.copy(), options)
      }
      return options === undefined ? call.reply : within(call.reply, call.what, options, this.#runtime.clock)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** The arguments are copies: the caller may reuse its own before there is credit and room. */
  async #callLater(
    call: Call,
    destination: number,
    handler: number,
    payload: Uint8Array | undefined,
    callWords: Words,
    options: WaitOptions = {},
  ): Promise<ReceivedMessage> {
    // It may be rejected while this function waits for a credit; `send` awaits it afterwards.
    call.reply.catch(() => {})
    let isOver = false
    const send = async (): Promise<ReceivedMessage> => {
      while (!isOver) {
        await this.ready(destination, options)
        const mapping = this.#mappingOf(destination)
        if (!isOver && mapping.channel.send(mapping, handler, callWords, payload, call) === OK) break
      }
      return await call.reply
    }
    try {
      return await within(send(), call.what, options, this.#runtime.clock)
    } finally {
      isOver = true
    }
  }

  /** Messages for a handler, as an Observable and an async iterable. Credits go back as messages are handled. */
  messages(handler: number): Observable<ReceivedMessage> & AsyncIterable<ReceivedMessage> {
    this.#assertOpen()
    return messageStream(this.#group.handlers, handler)
  }

  /** Handles messages that have arrived; returns how many. Never waits, never touches the event loop. */
  poll(limit = POLL_LIMIT_DEFAULT): number {
    if (this.#closing !== undefined) this.#assertOpen()
    if (running.channels > 0) throw new AmError('ERR_AM_HANDLER_RULE', 'a handler may not poll')
    if (!Number.isInteger(limit) || limit < 1) {
      throw rangeError(`the limit of a poll must be a whole number from 1, not ${String(limit)}`)
    }
    const { handlers } = this.#group
    const before = handlers.runs
    this.#group.poll(limit)
    const handled = handlers.runs - before
    this.#pollLoop.handlePoll(handled, this.#peers)
    return handled
  }

  /**
   * With progress by the event loop, resolves when a handler has run; with manual progress, when there may be
   * something to poll. Like poll(2), it also resolves when the timeout expires.
   */
  async wait(options: WaitOptions = {}): Promise<void> {
    this.#assertOpen()
    checkWait(options)
    const isManual = this.#options.progress === 'manual'
    // A program that polls and waits in a loop lets the event loop run, however much there is to poll.
    if (isManual && !this.#group.arm()) return await nextTurnOf(this.#runtime.clock)
    // Keep the count of earlier waiters: the handler that runs now may still have to wake them.
    if (this.#waiters.waiting.size === 0) this.#runsBefore = this.#group.handlers.runs
    const waiter = this.#waiters.wait()
    this.#peers.isWatched = true
    this.#keepAlive()
    try {
      await within(waiter.promise, 'wait', options, this.#runtime.clock)
    } catch (error) {
      if ((error as AmError | null)?.code !== 'ERR_AM_TIMEOUT') throw error
    } finally {
      waiter.forget()
      this.#peers.isWatched = this.#waiters.waiting.size > 0
      this.#keepAlive()
      if (isManual && this.#waiters.waiting.size === 0) this.#group.disarm()
    }
  }

  stats(): EndpointStats {
    return statsOf(this.#peers, this.#group)
  }

  /**
   * Keeps the event loop alive while the endpoint is open, as a server does. With progress by the event loop this
   * is the default; without it only `wait` keeps the event loop alive.
   */
  ref(): void {
    this.#isReferenced = true
    this.#keepAlive()
  }

  unref(): void {
    this.#isReferenced = false
    this.#keepAlive()
  }

  /**
   * Closes the endpoint. Sent messages are delivered first. Peers' requests under way come back to them with the
   * reason `PEER_CLOSED`.
   */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    this.#runtime.rendezvous.close(this.#id.endpoint)
    remoteRendezvous.close(this.#id.endpoint)
    this.#listening?.close()
    for (const mapping of this.#mappings) mapping?.channel.waiters.refuse()
    const publication = await this.#publication?.catch(() => undefined)
    await Promise.all([publication?.close(), this.#peers.close()])
    this.#group.close()
    endSources(this.#group.handlers)
    this.#waiters.wake()
  }

  #keepAlive(): void {
    if (this.#closing === undefined && (this.#isReferenced || this.#waiters.waiting.size > 0)) {
      this.#runtime.rendezvous.ref(this.#id.endpoint)
    } else {
      this.#runtime.rendezvous.unref(this.#id.endpoint)
    }
  }

  #install(mapping: Destination): void {
    this.#assertOpen()
    const { index, peer } = mapping
    while (this.#mappings.length <= index) this.#mappings.push(undefined)
    if (peer !== undefined) this.#peers.addMapping(peer, index)
    this.#uninstall(index)
    this.#mappings[index] = mapping
  }

  #uninstall(index: number): void {
    const mapping = this.#mappings[index]
    if (mapping === undefined) return
    this.#mappings[index] = undefined
    // Waiters look up the destination again; the channel may end now.
    mapping.channel.waiters.wake()
    if (mapping.peer !== undefined) this.#peers.removeMapping(mapping.peer, index)
    else this.#closeIfOver(mapping.channel, index)
  }

  /** Opens a channel without a peer: all requests on it come back. */
  #openUnreachable(destination: number, name: string): EndpointChannel {
    const [end] = openLoopbackPair(UNREACHABLE_RING_SIZE)
    const owner = {
      peerName: name,
      destination,
      handleProgress: () => {
        this.#wakeWaiters()
        this.#closeIfOver(channel, destination)
      },
      roomWanted: () => 0,
      handleBroken: () => {},
    }
    const channel = this.#peers.openChannel(end, this.#options.credits, owner, NO_SEGMENT)
    channel.lose(UNDELIVERABLE.NO_SUCH_ENDPOINT)
    return channel
  }

  /** A channel without a peer stays until all its requests have come back. */
  #closeIfOver(channel: EndpointChannel, destination: number): void {
    if (this.#mappings[destination]?.channel !== channel && channel.isOver) this.#group.detach(channel)
  }

  /** With progress by the event loop, a turn in which no handler has run does not wake waiters. */
  #wakeWaiters(): void {
    if (this.#waiters.waiting.size === 0) return
    const isNews = this.#options.progress === 'manual' || this.#group.handlers.runs !== this.#runsBefore
    if (isNews) this.#waiters.wake()
  }

  /** Hot: on the path of every request. */
  #admit(destination: number, handler: number): Destination {
    if (running.channels > 0) refuseInHandler()
    if (!Number.isInteger(handler) || handler < 1 || handler >= HANDLER_COUNT) refuseHandler(handler)
    if (this.#closing !== undefined) this.#assertOpen()
    const mapping = typeof destination === 'number' ? this.#mappings[destination] : undefined
    if (mapping === undefined) refuseDestination(destination)
    return mapping
  }

  #mappingOf(destination: number): Destination {
    if (this.#closing !== undefined) this.#assertOpen()
    const mapping = typeof destination === 'number' ? this.#mappings[destination] : undefined
    if (mapping === undefined) refuseDestination(destination)
    return mapping
  }

  #assertOpen(): void {
    if (this.#closing !== undefined) throw closedError()
  }
}
