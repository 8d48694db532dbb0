import type { Clock, Timer } from '../nic/clock.ts'
import type { VirtualInterface } from '../nic/index.ts'
import type { ChannelOwner } from './channel.ts'
import type { ChannelGroup } from './channel-group.ts'
import { EndpointChannel } from './endpoint-channel.ts'
import { AmError, closedError } from './errors.ts'
import { NO_DESTINATION, type RemoteSegment } from './mapping.ts'
import type { CheckedOptions } from './options.ts'
import { Peer, type PeerHost, type SegmentDescription } from './peer.ts'
import { reliable } from './reliability/reliable.ts'
import type { ControlConnection } from './rendezvous/control-connection.ts'
import { decodeTag, type Open } from './rendezvous/control-messages.ts'
import { answer, type CallAddress, dial, type Introduction, type Meeting } from './rendezvous/dialing.ts'
import { type EndpointName, encodeName } from './rendezvous/endpoint-name.ts'
import { isOfThisHost, type Origin, type RendezvousHost, refuse } from './rendezvous/reception.ts'
import type { TcpAddress } from './rendezvous/tcp-address.ts'
import type { Runtime } from './runtime.ts'
import type { Segment } from './segment.ts'

/** Most peers of one endpoint, dialled by either side. */
const PEERS_MAX = 4096
/** Longest times that a closing endpoint waits for its messages to leave, and for its peers to receive its BYE. */
const FLUSH_MS_MAX = 1000
const BYE_MS_MAX = 200

/** The endpoint to connect with, and its address for callers on other hosts. */
export interface Found {
  readonly target: EndpointName
  readonly remote?: TcpAddress | undefined
}

/** All peers that one endpoint is connected with. */
export class PeerTable implements PeerHost, RendezvousHost {
  isWatched = false
  readonly clock: Clock
  readonly #retentionBytes: number | undefined
  readonly #callAddress: CallAddress
  readonly #id: EndpointName
  readonly #options: CheckedOptions
  readonly #segment: Segment
  readonly #group: ChannelGroup
  readonly #onProgress: () => void
  readonly #peers = new Set<Peer>()
  /** Dials under way, so that two maps of one name share one. */
  readonly #dials = new Map<string, Promise<Peer>>()
  #isClosed = false

  constructor(
    id: EndpointName,
    options: CheckedOptions,
    segment: Segment,
    group: ChannelGroup,
    onProgress: () => void,
    { clock, callAddress, retentionBytes }: Pick<Runtime, 'clock' | 'callAddress' | 'retentionBytes'>,
  ) {
    this.clock = clock
    this.#retentionBytes = retentionBytes
    this.#callAddress = callAddress
    this.#id = id
    this.#options = options
    this.#segment = segment
    this.#group = group
    this.#onProgress = onProgress
  }

  get all(): Iterable<Peer> {
    return this.#peers
  }

  /** Finds that peer and passes it to `install`, with the segment that the peer shows for this tag. */
  async find(
    { target, remote }: Found,
    tag: bigint,
    install: (peer: Peer, segment: RemoteSegment | undefined) => void,
  ): Promise<void> {
    const name = encodeName(target)
    for (;;) {
      // No `await` between the last lookup and the dial: two maps of one name must not both dial.
      const underWay = this.#dials.get(name)
      const known = underWay === undefined ? this.#known(name) : await underWay
      if (known === undefined) break
      try {
        return await known.askForSegment(tag, segment => install(known, segment))
      } catch (error) {
        if (!known.isGone) throw error
        // The connection ended during this call. Another connection to the name may exist, or another map may be
        // dialling.
      }
    }
    if (this.#isClosed) throw closedError()
    let mapped: Promise<void> | undefined
    const dialled = dial(this.#introduction, target, tag, remote).then(meeting => {
      if (this.#isClosed) {
        turnAway(meeting)
        throw closedError()
      }
      const peer = this.#add(name, meeting)
      mapped = peer.awaitFirstSegment(segment => install(peer, segment))
      peer.begin()
      return peer
    })
    this.#dials.set(name, dialled)
    await dialled.finally(() => this.#dials.delete(name))
    await mapped
  }

  async answer(open: Open, connection: ControlConnection, origin: Origin): Promise<void> {
    if (this.#peers.size >= PEERS_MAX) {
      return refuse(connection, 'LIMIT', `there are ${PEERS_MAX} peers already`)
    }
    const meeting = await answer(this.#introduction, open, connection, origin)
    if (meeting === undefined) return
    if (this.#isClosed) return turnAway(meeting)
    const peer = this.#add(open.from, meeting, !isOfThisHost(origin))
    peer.answerMap(decodeTag(open.tag))
    peer.begin()
    this.#onProgress()
  }

  openChannel(
    end: VirtualInterface,
    credits: number,
    owner: ChannelOwner,
    segment = this.#segment,
  ): EndpointChannel {
    const { tagWords: tag, limits } = this.#options
    const options = {
      credits,
      owner,
      tag,
      segment,
      mediumMax: limits.medium,
      longMax: limits.long,
    }
    const { peerTimeoutMs } = this.#options
    const retentionBytes = this.#retentionBytes
    const lossless = reliable(end, {
      peerTimeoutMs,
      clock: this.clock,
      ...(retentionBytes && { retentionBytes }),
    })
    const channel = this.#group.add(new EndpointChannel(lossless, this.#group.handlers, options))
    // With progress by the event loop the poller sets the doorbell.
    if (this.#options.progress === 'manual') channel.end.setDoorbell(this.#onProgress)
    return channel
  }

  addMapping(peer: Peer, index: number): void {
    peer.mappings.push(index)
    this.#setDestination(peer.peerName)
  }

  removeMapping(peer: Peer, index: number): void {
    peer.mappings.splice(peer.mappings.indexOf(index), 1)
    this.#setDestination(peer.peerName)
    peer.sayUnmap()
    this.handlePeerProgress(peer)
  }

  describeSegment(peer: Peer, tag: bigint): SegmentDescription | undefined {
    if (tag !== this.#options.tag) return undefined
    const { bytes, isReadOnly } = this.#segment
    const key = peer.channel.shareSegment() ?? new Uint8Array(0)
    return { length: bytes.length, longMax: this.#options.limits.long, isReadOnly, key }
  }

  handlePeerProgress(peer: Peer): void {
    this.#onProgress()
    peer.settleUnmaps()
    if (peer.isRetired) this.#retire(peer)
  }

  /** Reads control messages of all peers, and detects dead ones, without the event loop. */
  checkNow(): void {
    for (const peer of this.#peers) peer.checkNow()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#flush()
    const goodbyes = [...this.#peers].map(peer => {
      this.#group.detach(peer.channel)
      return peer.sayBye()
    })
    let timer: Timer | undefined
    const timeIsUp = new Promise<void>(resolve => {
      timer = this.clock.setTimeout(resolve, BYE_MS_MAX)
    })
    await Promise.race([Promise.all(goodbyes), timeIsUp])
    this.clock.clearTimeout(timer)
    this.#peers.clear()
  }

  get #introduction(): Introduction {
    const { preferred, credits, peerTimeoutMs } = this.#options
    return {
      name: this.#id,
      drivers: preferred,
      credits,
      peerTimeoutMs,
      clock: this.clock,
      callAddress: this.#callAddress,
    }
  }

  #known(name: string): Peer | undefined {
    for (const peer of this.#peers) if (peer.peerName === name && !peer.isGone && !peer.isHearsay) return peer
    return undefined
  }

  #add(name: string, meeting: Meeting, isHearsay = false): Peer {
    const peer = new Peer(name, meeting.connection, this)
    peer.isHearsay = isHearsay
    peer.driverReason = meeting.whyNotBetter
    try {
      peer.channel = this.openChannel(meeting.end, meeting.credits, peer)
    } catch (error) {
      // For example, out of memory.
      turnAway(meeting)
      const why = `there is no channel to ${name}: ${(error as Error).message}`
      throw new AmError('ERR_AM_UNREACHABLE', why, { cause: error })
    }
    this.#peers.add(peer)
    this.#setDestination(name)
    return peer
  }

  #setDestination(name: string): void {
    const peers = [...this.#peers].filter(({ peerName, isHearsay }) => peerName === name && !isHearsay)
    let destination: number | undefined
    for (const { mappings } of peers) destination ??= mappings.find(index => index !== NO_DESTINATION)
    for (const peer of peers) peer.destination = destination
  }

  /** Ends a connection that neither side needs any more. */
  #retire(peer: Peer): void {
    this.#peers.delete(peer)
    this.#group.detach(peer.channel)
    void peer.sayBye()
  }

  /** Resolves when all sent messages have left this process, or at the deadline. */
  async #flush(): Promise<void> {
    const deadlineMs = this.clock.now() + FLUSH_MS_MAX
    while (this.clock.now() < deadlineMs && !this.#isFlushed()) {
      await new Promise<void>(resolve => this.clock.setTimeout(resolve, 1))
    }
  }

  #isFlushed(): boolean {
    let isFlushed = true
    for (const { channel } of this.#peers) isFlushed = channel.flush() && isFlushed
    return isFlushed
  }
}

/** Ends a new connection that is of no use. */
function turnAway({ end, connection }: Meeting): void {
  end.close()
  connection.destroy()
}
