import type { Driver, VirtualInterface } from '../nic/index.ts'
import { clearTimeout, performance, setTimeout } from '../nic/real-time.ts'
import type { ChannelOwner } from './channel.ts'
import type { ChannelGroup } from './channel-group.ts'
import { EndpointChannel } from './endpoint-channel.ts'
import { AmError, closedError } from './errors.ts'
import type { RemoteSegment } from './mapping.ts'
import type { CheckedOptions } from './options.ts'
import { Peer, type PeerHost, type SegmentDescription } from './peer.ts'
import { reliable } from './reliability/reliable.ts'
import type { ControlConnection } from './rendezvous/control-connection.ts'
import { decodeTag, type Open } from './rendezvous/control-messages.ts'
import { answer, dial, type Meeting } from './rendezvous/dialing.ts'
import { type EndpointName, encodeName } from './rendezvous/endpoint-name.ts'
import { type RendezvousHost, refuse } from './rendezvous/reception.ts'
import type { TcpAddress } from './rendezvous/remote-rendezvous.ts'
import type { Segment } from './segment.ts'

/** Peers of one endpoint, whoever has dialled. */
const PEERS_MAX = 4096
/** How long a closing endpoint waits for what it has sent to leave, and for its peers to hear that it goes. */
const FLUSH_MS_MAX = 1000
const BYE_MS_MAX = 200

/** Whom to look for, and where to ask for it from another host. */
export interface Found {
  readonly target: EndpointName
  readonly remote?: TcpAddress | undefined
}

/** All endpoints that this one is connected with. */
export class PeerTable implements PeerHost, RendezvousHost {
  isWatched = false
  readonly #id: EndpointName
  readonly #options: CheckedOptions
  readonly #segment: Segment
  readonly #group: ChannelGroup
  readonly #onProgress: () => void
  readonly #peers = new Set<Peer>()
  /** Dials that are under way, so that two maps of one name share them. */
  readonly #dials = new Map<string, Promise<Peer>>()
  #isClosed = false

  constructor(
    id: EndpointName,
    options: CheckedOptions,
    segment: Segment,
    group: ChannelGroup,
    onProgress: () => void,
  ) {
    this.#id = id
    this.#options = options
    this.#segment = segment
    this.#group = group
    this.#onProgress = onProgress
  }

  get all(): Iterable<Peer> {
    return this.#peers
  }

  /** Finds that peer and hands it to `install`, with what it shows to this tag. */
  async find(
    { target, remote }: Found,
    tag: bigint,
    install: (peer: Peer, segment: RemoteSegment | undefined) => void,
  ): Promise<void> {
    const name = encodeName(target)
    for (;;) {
      // Nothing is waited for between the last look and the dial: two maps of one name must not both dial.
      const underWay = this.#dials.get(name)
      const known = underWay === undefined ? this.#known(name) : await underWay
      if (known === undefined) break
      try {
        return await known.askForSegment(tag, segment => install(known, segment))
      } catch (error) {
        if (!known.isGone) throw error
        // It went at this very moment. There may be another way to whoever has its name; others may be on it already.
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

  async answer(open: Open, connection: ControlConnection, isRemote: boolean): Promise<void> {
    if (this.#peers.size >= PEERS_MAX) {
      return refuse(connection, 'LIMIT', `there are ${PEERS_MAX} peers already`)
    }
    const meeting = await answer(this.#introduction, open, connection, isRemote)
    if (meeting === undefined) return
    if (this.#isClosed) return turnAway(meeting)
    const peer = this.#add(open.from, meeting, isRemote)
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
    const channel = this.#group.add(new EndpointChannel(reliable(end), this.#group.handlers, options))
    // With progress by the event loop the doorbell is the poller's.
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

  /** What peers say outside their channels, and whether they live. */
  hearNow(): void {
    for (const peer of this.#peers) peer.hearNow()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#flush()
    const goodbyes = [...this.#peers].map(peer => {
      this.#group.detach(peer.channel)
      return peer.sayBye()
    })
    let timer: NodeJS.Timeout | undefined
    const timeIsUp = new Promise(resolve => {
      timer = setTimeout(resolve, BYE_MS_MAX)
    })
    await Promise.race([Promise.all(goodbyes), timeIsUp])
    clearTimeout(timer)
    this.#peers.clear()
  }

  get #introduction(): {
    name: EndpointName
    drivers: readonly Driver[]
    credits: number
    mediumMax: number
  } {
    const { drivers, credits, limits } = this.#options
    return { name: this.#id, drivers, credits, mediumMax: limits.medium }
  }

  #known(name: string): Peer | undefined {
    for (const peer of this.#peers) if (peer.peerName === name && !peer.isGone && !peer.isHearsay) return peer
    return undefined
  }

  #add(name: string, meeting: Meeting, isHearsay = false): Peer {
    const peer = new Peer(name, meeting.connection, this)
    peer.isHearsay = isHearsay
    try {
      peer.channel = this.openChannel(meeting.end, meeting.credits, peer)
    } catch (error) {
      // No memory for it, perhaps.
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
    const destination = peers.find(({ mappings }) => mappings.length > 0)?.mappings[0]
    for (const peer of peers) peer.destination = destination
  }

  /** Nobody needs this connection any more. */
  #retire(peer: Peer): void {
    this.#peers.delete(peer)
    this.#group.detach(peer.channel)
    void peer.sayBye()
  }

  /** Until everything that was sent has left this process. */
  async #flush(): Promise<void> {
    const deadlineMs = performance.now() + FLUSH_MS_MAX
    while (performance.now() < deadlineMs && !this.#isFlushed()) {
      await new Promise(resolve => setTimeout(resolve, 1))
    }
  }

  #isFlushed(): boolean {
    let isFlushed = true
    for (const { channel } of this.#peers) isFlushed = channel.flush() && isFlushed
    return isFlushed
  }
}

/** The two have met, and nothing comes of it. */
function turnAway({ end, connection }: Meeting): void {
  end.close()
  connection.destroy()
}
