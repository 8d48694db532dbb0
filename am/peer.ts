import type { Clock } from '../nic/clock.ts'
import { NicError, openLog, type VirtualInterface } from '../nic/index.ts'
import type { ChannelOwner } from './channel.ts'
import type { EndpointChannel } from './endpoint-channel.ts'
import { AmError } from './errors.ts'
import type { RemoteSegment } from './mapping.ts'
import type { ControlConnection } from './rendezvous/control-connection.ts'
import { type ControlMessage, decodeTag, encodeTag, type Mapped } from './rendezvous/control-messages.ts'
import { DIAL_TIMEOUT_MS } from './rendezvous/dialing.ts'
import { UNDELIVERABLE } from './undeliverable.ts'

const log = openLog('fastsockets:am:peer')

/** Most MAPs without an answer: as many as there are destinations. */
const MAPS_MAX = 65536
/** Most MAPs that are sent and not answered: a control connection holds only so many bytes. */
const MAPS_UNDER_WAY_MAX = 256
/** Number of the MAP that an OPEN contains. */
const FIRST_MAP = 0
/** The segment could not be described, and the connection has ended. */
const FAILED = 'failed'

/**
 * Receives the segment that a peer shows for a tag; undefined if the tag is wrong. Called at once when the answer
 * arrives: a turn later the connection might have ended as unused.
 */
export type InstallSegment = (segment: RemoteSegment | undefined) => void

export interface SegmentDescription {
  readonly length: number
  readonly longMax: number
  readonly isReadOnly: boolean
  /** Empty if there is no one-sided access. */
  readonly key: Uint8Array
}

/** The endpoint, as far as its peers use it. */
export interface PeerHost {
  /** Description of our segment for a peer that shows `tag`; undefined if the tag is wrong. */
  describeSegment(peer: Peer, tag: bigint): SegmentDescription | undefined
  /** True while a caller waits for progress. */
  readonly isWatched: boolean
  readonly clock: Clock
  handlePeerProgress(peer: Peer): void
}

/** Another endpoint with which this one is connected: the channel, and the control connection that is its lifeline. */
export class Peer implements ChannelOwner {
  readonly peerName: string
  /** Why no preferred driver connects the two. */
  driverReason: string | undefined
  /** The channel to the peer; set once, when the connection is made. */
  channel!: EndpointChannel
  /** Entries of our translation table that stand for this connection; `NO_DESTINATION` for each mapping of RPC's own. */
  readonly mappings: number[] = []
  /** The first entry that stands for this peer, perhaps by another connection: both sides may have dialled at once. */
  destination: number | undefined
  /** The peer is on another host, and its name is not verified. */
  isHearsay = false
  #peerMappingCount = 0
  /** Either side has removed an entry; when none is left, the connection is not needed any more. */
  #isUnmapped = false
  #unmapsOwed = 0
  /** Replies that the peer had sent back when it last removed an entry: they may still be under way to us. */
  #repliesToReturn = 0
  readonly #host: PeerHost
  readonly #connection: ControlConnection
  readonly #maps = new Map<number, { install: InstallSegment; reject: (e: Error) => void }>()
  /** MAPs that are not sent yet, and their tags. */
  readonly #unsentMaps = new Map<number, bigint>()
  /** MAPs that have timed out; the peer may still answer. */
  readonly #lateMaps = new Set<number>()
  #nextMap = FIRST_MAP + 1
  #isBye = false
  #hasSaidBye = false
  #isEnded = false

  constructor(name: string, connection: ControlConnection, host: PeerHost) {
    this.peerName = name
    this.#connection = connection
    this.#host = host
  }

  /** Call once `channel` is set. */
  begin(): void {
    log('%s by %s', this.peerName, this.channel.end.driver)
    void this.#connection.over.then(() => this.channel.releaseSegment())
    this.#connection.listen({
      handleControl: message => this.#handle(message),
      handleControlEnd: () => this.#handleEnd(),
    })
  }

  /** No table has an entry for this connection any more, and nothing is under way. */
  get isRetired(): boolean {
    const { state, outstanding, isOver, isFlushed, isInHandler, repliesReturned } = this.channel
    if (this.mappings.length > 0 || this.#maps.size > 0 || isInHandler) return false
    if (state !== 'open') return isOver && this.#isEnded
    const isUnmapped = this.#isUnmapped && this.#unmapsOwed === 0 && this.#peerMappingCount === 0
    return isUnmapped && outstanding === 0 && isFlushed && repliesReturned >= this.#repliesToReturn
  }

  get isGone(): boolean {
    return this.#isEnded || this.channel.state !== 'open'
  }

  /** Sends a MAP that shows a tag. `install` is called before the promise is resolved. */
  askForSegment(tag: bigint, install: InstallSegment): Promise<void> {
    if (this.isGone || this.#maps.size + this.#lateMaps.size >= MAPS_MAX)
      return Promise.reject(this.#goneError())
    const id = this.#nextMap++
    const mapped = this.#mapped(id, install)
    this.#unsentMaps.set(id, tag)
    this.#sendMaps()
    return mapped
  }

  /** Waits for the answer to the tag in the OPEN. */
  awaitFirstSegment(install: InstallSegment): Promise<void> {
    return this.#mapped(FIRST_MAP, install)
  }

  /** Undefined for a tag other than ours. An error of a driver ends the connection, not the program. */
  #tryDescribe(tag: bigint): SegmentDescription | undefined | typeof FAILED {
    try {
      return this.#host.describeSegment(this, tag)
    } catch (error) {
      log('%s: the segment cannot be shared: %s', this.peerName, (error as Error).message)
      this.#connection.destroy()
      return FAILED
    }
  }

  /** Answers a MAP of the peer; the first came with its OPEN. */
  answerMap(tag: bigint, id = FIRST_MAP): void {
    this.#peerMappingCount++
    const segment = this.#tryDescribe(tag)
    if (segment === FAILED) return
    this.#connection.send({
      op: 'mapped',
      id,
      isTagRight: segment !== undefined,
      segment: segment?.length ?? 0,
      longMax: segment?.longMax ?? 0,
      isReadOnly: segment?.isReadOnly ?? false,
      key: Buffer.from(segment?.key ?? []).toString('base64'),
    })
  }

  sayUnmap(): void {
    this.#unmapsOwed++
    this.settleUnmaps()
  }

  /**
   * Sends the UNMAPs once nothing of ours is under way except replies that we have sent back, which are not
   * acknowledged. An UNMAP carries their number: the peer may end the connection once it has received them all.
   */
  settleUnmaps(): void {
    const { state, outstanding, repliesSentBack } = this.channel
    if (this.#unmapsOwed === 0 || (state === 'open' && outstanding > 0)) return
    for (; this.#unmapsOwed > 0; this.#unmapsOwed--)
      this.#connection.send({ op: 'unmap', bounced: repliesSentBack })
    this.#isUnmapped = true
  }

  /** Ends the connection on purpose. Resolves when the connection is over. */
  sayBye(): Promise<void> {
    log('%s: closed by us', this.peerName)
    this.#hasSaidBye = true
    this.#connection.send({ op: 'bye' })
    this.#connection.end()
    return this.#connection.over
  }

  /** For programs that do not let the event loop run: reads control messages, or the end of the connection. */
  checkNow(): void {
    if (!this.#isEnded) this.#connection.checkNow()
  }

  /** Hot: after every poll. */
  handleProgress(): void {
    if (this.#host.isWatched || this.#isUnmapped || this.#unmapsOwed > 0 || this.#isEnded)
      this.#host.handlePeerProgress(this)
  }

  roomWanted(): number {
    return this.channel.roomWanted
  }

  handleBroken(error: AmError): void {
    const isLost = error.cause instanceof NicError && error.cause.code === 'ERR_NIC_PEER_LOST'
    log('%s: %s', this.peerName, isLost ? 'does not answer' : error.message)
    this.#connection.destroy()
  }

  #handle(message: ControlMessage): void {
    switch (message.op) {
      case 'map':
        return this.answerMap(decodeTag(message.tag), message.id)
      case 'mapped':
        this.#handleMapped(message)
        return this.#sendMaps()
      case 'unmap':
        this.#peerMappingCount--
        this.#isUnmapped = true
        this.#repliesToReturn = message.bounced
        return this.#host.handlePeerProgress(this)
      case 'bye':
        this.#isBye = true
        // Before our connection ends: that end permits the peer to release its segment.
        return this.channel.forgetPeerSegment()
      default:
        log('%s says %s, which it may not', this.peerName, message.op)
        this.#connection.destroy()
    }
  }

  #sendMaps(): void {
    for (const [id, tag] of this.#unsentMaps) {
      if (this.#maps.size - this.#unsentMaps.size + this.#lateMaps.size >= MAPS_UNDER_WAY_MAX) return
      this.#unsentMaps.delete(id)
      this.#connection.send({ op: 'map', id, tag: encodeTag(tag) })
    }
  }

  #mapped(id: number, install: InstallSegment): Promise<void> {
    const { clock } = this.#host
    this.#connection.ref()
    return new Promise((resolve, reject) => {
      const timer = clock.setTimeout(() => {
        if (!this.#unsentMaps.delete(id)) this.#lateMaps.add(id)
        this.#drop(id)
        const text = `${this.peerName} did not answer within ${DIAL_TIMEOUT_MS} ms`
        reject(new AmError('ERR_AM_TIMEOUT', text))
      }, DIAL_TIMEOUT_MS)
      const settle: InstallSegment = segment => {
        clock.clearTimeout(timer)
        try {
          install(segment)
          resolve()
        } catch (error) {
          reject(error)
        }
      }
      const fail = (error: Error): void => {
        clock.clearTimeout(timer)
        reject(error)
      }
      this.#maps.set(id, { install: settle, reject: fail })
    })
  }

  #drop(id: number): void {
    this.#maps.delete(id)
    if (this.#maps.size === 0) this.#connection.unref()
  }

  #handleMapped(message: ControlMessage & { op: 'mapped' }): void {
    const waiting = this.#maps.get(message.id)
    if (waiting === undefined) {
      // A late answer: the peer has an entry for us that this side does not use.
      if (this.#lateMaps.delete(message.id)) return this.#giveUp()
      log('%s answers a question that was not asked', this.peerName)
      return this.#connection.destroy()
    }
    this.#drop(message.id)
    if (!message.isTagRight) return waiting.install(undefined)
    try {
      const memory = message.key === '' ? undefined : importKey(this.channel.end, message)
      const { segment: length, longMax, isReadOnly } = message
      const segment = { length, longMax, isReadOnly, memory }
      this.channel.peerSegment = segment
      waiting.install(segment)
    } catch (error) {
      waiting.reject(error as Error)
      this.#connection.destroy()
    }
  }

  #giveUp(): void {
    this.sayUnmap()
    this.#host.handlePeerProgress(this)
  }

  #handleEnd(): void {
    if (this.#isEnded) return
    this.#isEnded = true
    if (!this.#hasSaidBye) log('%s %s', this.peerName, this.#isBye ? 'has closed' : 'is dead')
    for (const waiting of this.#maps.values()) waiting.reject(this.#goneError())
    this.#maps.clear()
    this.#unsentMaps.clear()
    this.channel.expectEnd(this.#isBye ? UNDELIVERABLE.PEER_CLOSED : UNDELIVERABLE.PEER_DEAD)
    this.#host.handlePeerProgress(this)
  }

  #goneError(): AmError {
    return new AmError('ERR_AM_NO_SUCH_ENDPOINT', `${this.peerName} is gone`)
  }
}

/** Undefined if no more memory of peers can be mapped: then bytes go in messages. Throws on an invalid key. */
function importKey(end: VirtualInterface, { key, segment }: Mapped): RemoteSegment['memory'] {
  try {
    const memory = end.importKey(Buffer.from(key, 'base64'))
    if (memory.length === segment) return memory
  } catch (error) {
    if ((error as NicError).code !== 'ERR_NIC_UNAVAILABLE') throw error
    log('a segment of %d bytes is not mapped: %s', segment, (error as Error).message)
    return undefined
  }
  throw new NicError('ERR_NIC_PROTOCOL_VIOLATION', 'a key of another length than the segment')
}
