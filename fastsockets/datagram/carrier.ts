/**
 * Carries the datagrams of one UDP socket past the kernel, to and from sockets of this host that are relinked, too. Each pair of
 * addresses begins in the kernel; each direction moves to a channel of its own accord once it has shown to be worth it (price.ts), and
 * returns to the kernel when its peer is gone.
 *
 * UDP has no handshake in which two programs could find each other, and a stranger's socket must never receive bytes of ours. So a
 * receiver has a door (doors.ts), and a marker goes through the kernel only to a socket that has answered, on a port that no other
 * socket has. Rejected: to find peers by probes, which strangers would receive; credits, since UDP does not block.
 *
 * Only for processes of this user, in this network namespace or in a container with the same rendezvous folder. Sockets with
 * `reuseAddr` or `reusePort`, with TTL, broadcast or multicast options, with a descriptor of their own or one that a cluster
 * shares, stay with the kernel.
 */
import { countUdpSockets, mayUseNetwork, openLog, randomBytes } from '../../nic/index.ts'
import { makeHidden } from '../../nic/own-resources.ts'
import type { Peers } from '../connect/peers.ts'
import { reachableOwnAddress, withoutMapping } from '../host/addresses.ts'
import { isUncaughtHandled, reportUncaught } from '../host/node-internals.ts'
import { DATAGRAMS, UNIX } from '../host/unix-paths.ts'
import { allowsDatagrams, decide, startsOnTcp } from '../policy/own-policy.ts'
import { AGAIN_PRICE_MAX_US, DATAGRAM_US, FIND_PRICE_US } from '../promotion/price.ts'
import type { SocketChannel } from '../stream/socket-channel.ts'
import { WINDOW } from '../stream/stream-layout.ts'
import { encodeMarker, isMarker, kindOf, PROBE, SECRET_SIZE, SWITCH, secretOf } from './datagram-layout.ts'
import { addressesOf, type DatagramReceiver, type ReceivingSocket } from './datagram-receiver.ts'
import { DatagramSender } from './datagram-sender.ts'
import { Destination } from './destination.ts'
import { DatagramDoor, doorKey, doorKeysTo } from './doors.ts'
import { awaitedReceiver } from './pairs.ts'
import { mayBeOfContainer, nativeSends } from './udp-handles.ts'
import type { Carrier, DatagramPair, Send, Sender, UdpHandle, UdpNotes } from './udp-notes.ts'
import { showSocket } from './udp-rows.ts'

const log = openLog('fastsockets:datagrams')

/** Addresses of this host with which one socket has to do; of more, the kernel carries the datagrams. */
const DESTINATIONS_MAX = 1024
/** Addresses that are known to be of other hosts, so that sending to them costs one look. */
const FOREIGN_MAX = 256
/**
 * Bytes that a socket keeps unread, unless the program has chosen the size of its receive buffer: as many as a stream. Linux's
 * own 208 KiB are some hundred datagrams, which come in one turn.
 */
const RECEIVE_LIMIT = WINDOW
/** For `send`: the kernel is to send. */
const NOT_CARRIED = -1
/** The longest datagrams: 65,535 bytes less the UDP head, and less the IP head for IPv4. Of longer ones the kernel says EMSGSIZE. */
const LENGTH_MAX_V4 = 65_507
const LENGTH_MAX_V6 = 65_527

/** The keys of the doors of this thread. */
const openDoors = new Set<string>()

/** Node's class of send requests. */
type RequestClass = new () => object

export class SocketCarrier implements Carrier, ReceivingSocket {
  readonly address: string
  readonly port: number
  unreadSize = 0
  isOpen = true
  readonly destinations = new Map<string, Map<number, Destination>>()

  readonly #handle: UdpHandle
  readonly #notes: UdpNotes
  readonly #peers: Peers
  readonly #isFast: boolean
  readonly #lengthMax: number
  /** Whether this address of another host has been looked at. */
  readonly #foreign = new Set<string>()
  #destinationCount = 0
  #receiverCount = 0
  #last: Destination | undefined
  #connected: Destination | undefined
  #requestClass: RequestClass | undefined
  #door: DatagramDoor | undefined
  /** What callers have cost: the door opens when it is enough. */
  #doorPaidUs = 0
  /** Less than the price of a sender's search, which comes to a door that is open. */
  #doorPriceUs = FIND_PRICE_US / 2
  #receiveLimit: number | undefined

  /** Undefined if the handle has no address. */
  static open(handle: UdpHandle, notes: UdpNotes, peers: Peers): SocketCarrier | undefined {
    const name: Partial<Sender> = {}
    if (handle.getsockname(name) !== 0 || name.address === undefined || !name.port) return undefined
    return new SocketCarrier(handle, notes, peers, name.address, name.port)
  }

  private constructor(handle: UdpHandle, notes: UdpNotes, peers: Peers, address: string, port: number) {
    this.#handle = handle
    this.#notes = notes
    this.#peers = peers
    this.address = address
    this.port = port
    this.#isFast = !startsOnTcp()
    this.#lengthMax = address.includes(':') ? LENGTH_MAX_V6 : LENGTH_MAX_V4
    if (notes.connectedTo !== undefined)
      this.handleConnected(notes.connectedTo.address, notes.connectedTo.port)
    if (this.#isFast) this.#openDoor()
  }

  get receiveLimit(): number {
    this.#receiveLimit ??= this.#notes.hasReceiveLimit
      ? (this.#handle.bufferSize(0, true, {}) ?? RECEIVE_LIMIT)
      : RECEIVE_LIMIT
    return this.#receiveLimit
  }

  /** Hot. */
  send(request: object, list: readonly Uint8Array[], port: number | boolean, address?: string): number {
    const destination = address === undefined ? this.#connected : this.#find(address, port as number)
    // The kernel's own send then throws.
    if (destination === undefined || !mayUseNetwork()) return NOT_CARRIED
    const { sender } = destination
    if (sender?.state === 'fast') {
      const bytes = list.length === 1 ? (list[0] as Uint8Array) : Buffer.concat(list)
      const { length } = bytes
      if (length > this.#lengthMax) return NOT_CARRIED
      return sender.send(bytes) ? length : NOT_CARRIED
    }
    if (sender === undefined && !destination.isAsking && destination.pay(DATAGRAM_US)) {
      this.#requestClass ??= request.constructor as RequestClass
      void this.#ask(destination)
    }
    return NOT_CARRIED
  }

  handleReceived(bytes: Buffer, sender: Sender): boolean {
    if (isMarker(bytes) && this.#handleMarker(bytes, sender)) return true
    if (this.#receiverCount > 0) this.#known(sender.address, sender.port)?.receiver?.handleKernelDatagram()
    if (this.#door === undefined) this.#payDoor(sender)
    return false
  }

  handleConnected(address: string, port: number): void {
    this.#leavePairs()
    this.#connected = this.#find(address, port)
    showSocket(this.#handle, this.#notes)
  }

  handleReceiveLimit(): void {
    this.#receiveLimit = undefined
    for (const { receiver } of this.#all()) receiver?.sendLimit()
  }

  handlePolicy(): void {
    const mayReceive = this.mayReceive()
    if (!mayReceive) this.#closeDoor()
    else if (this.#isFast) this.#openDoor()
    for (const { address, port, sender, receiver } of [...this.#all()]) {
      if (!maySendTo(address, port)) sender?.close()
      if (!mayReceive) receiver?.stop()
    }
    showSocket(this.#handle, this.#notes)
  }

  leave(): void {
    for (const { sender, receiver } of [...this.#all()]) {
      sender?.close()
      receiver?.stop()
    }
    this.#closeDoor()
    showSocket(this.#handle, this.#notes)
  }

  close(): void {
    if (!this.isOpen) return
    this.isOpen = false
    this.#leavePairs()
    this.#closeDoor()
  }

  pairs(): DatagramPair[] {
    return [...this.#all()].map(({ address, port, sender, receiver }) => ({
      address,
      port,
      sends: sender?.state === 'fast' ? 'shm' : 'udp',
      receives: receiver === undefined ? 'udp' : 'shm',
      sent: sender?.stream?.counts.datagrams ?? 0,
      received: receiver?.stream.counts.datagrams ?? 0,
      sentDropped: sender?.stream?.counts.dropped ?? 0,
      receivedDropped: receiver?.stream.counts.dropped ?? 0,
    }))
  }

  /** Whether a pair that ends here may be opened. */
  mayReceive(): boolean {
    if (!this.isOpen || this.#notes.reason !== undefined) return false
    if (!mayUseNetwork() || !allowsDatagrams() || decide('server', this.address, this.port).use === 'tcp')
      return false
    return this.#receiverCount < DESTINATIONS_MAX && countUdpSockets(this.port) === 1
  }

  deliver(bytes: Buffer, sender: Sender): void {
    this.#notes.scope.runInAsyncScope(this.#deliverNow, this, bytes, sender)
  }

  /** The program keeps the object, to which Node adds the size: with a place for it there is less to allocate. */
  #deliverNow(bytes: Buffer, { address, family, port }: Sender): void {
    const from = { address, family, port, size: bytes.length }
    if (!isUncaughtHandled()) return this.#notes.onmessage?.(bytes.length, this.#handle, bytes, from)
    try {
      this.#notes.onmessage?.(bytes.length, this.#handle, bytes, from)
    } catch (error) {
      if (!reportUncaught(error)) throw error
    }
  }

  handleReceiverOver(receiver: DatagramReceiver): void {
    this.#receiverCount--
    const { sender } = receiver
    const destination = sender && this.#known(sender.address, sender.port)
    if (destination?.receiver === receiver) destination.receiver = undefined
  }

  #handleMarker(marker: Buffer, sender: Sender): boolean {
    const receiver = awaitedReceiver(secretOf(marker))
    if (receiver === undefined) return false
    // Of a pair that is over.
    if (receiver === null) return true
    if (kindOf(marker) === SWITCH && receiver.sender?.port === sender.port) receiver.handleSwitch()
    if (kindOf(marker) !== PROBE || receiver.sender !== undefined || !this.mayReceive()) return true
    const { address, family, port } = sender
    const destination = this.#known(address, port) ?? this.#add(address, port, true)
    if (destination === undefined) receiver.close()
    else {
      destination.receiver?.close()
      destination.receiver = receiver
      destination.payAll()
      this.#receiverCount++
      receiver.handleProbe(this, { address, family, port })
    }
    return true
  }

  #payDoor({ address, port }: Sender): void {
    const known = this.#known(address, port)
    if (known?.isCaller === false || (known === undefined && !this.#mayBeNear(address))) return
    if (known === undefined && this.#add(address, port, true) === undefined) return
    this.#doorPaidUs += DATAGRAM_US
    if (this.#doorPaidUs < this.#doorPriceUs) return
    this.#doorPaidUs = 0
    this.#doorPriceUs = AGAIN_PRICE_MAX_US
    this.#openDoor()
  }

  #find(address: string, port: number): Destination | undefined {
    const known = this.#known(address, port)
    if (known === undefined && !this.#mayBeNear(address)) return undefined
    const found = known ?? this.#add(address, port, false)
    if (found !== undefined) this.#last = found
    return found
  }

  /** Hot: most sockets have one peer, and need no look into the maps. */
  #known(address: string, port: number): Destination | undefined {
    const last = this.#last
    if (last !== undefined && last.port === port && last.address === address) return last
    return this.destinations.get(address)?.get(port)
  }

  #add(address: string, port: number, isCaller: boolean): Destination | undefined {
    if (this.#destinationCount >= DESTINATIONS_MAX) this.#forgetIdle()
    if (this.#destinationCount >= DESTINATIONS_MAX) return undefined
    const made = new Destination(address, port, isCaller, this.#isFast)
    let ports = this.destinations.get(address)
    if (ports === undefined) {
      ports = new Map()
      this.destinations.set(address, ports)
    }
    ports.set(port, made)
    this.#destinationCount++
    return made
  }

  #forgetIdle(): void {
    for (const [address, ports] of this.destinations) {
      for (const [port, { sender, receiver, isAsking }] of ports) {
        if (sender !== undefined || receiver !== undefined || isAsking) continue
        ports.delete(port)
        this.#destinationCount--
      }
      if (ports.size === 0) this.destinations.delete(address)
    }
    this.#last = undefined
  }

  /** Whether the address may be one of this host. With a rendezvous folder any other may be that of a container: a search says. */
  #mayBeNear(address: string): boolean {
    if (mayBeOfContainer()) return true
    if (this.#foreign.has(address)) return false
    const plain = withoutMapping(address)
    if (reachableOwnAddress(plain) === plain) return true
    if (this.#foreign.size >= FOREIGN_MAX) this.#foreign.clear()
    this.#foreign.add(address)
    return false
  }

  *#all(): Iterable<Destination> {
    for (const ports of this.destinations.values()) yield* ports.values()
  }

  #leavePairs(): void {
    for (const { sender, receiver } of [...this.#all()]) {
      sender?.close()
      receiver?.close()
    }
  }

  #closeDoor(): void {
    this.#door?.close()
    this.#door = undefined
    openDoors.delete(doorKey(this.address, this.port))
  }

  #openDoor(): void {
    if (this.#door !== undefined || !this.mayReceive()) return
    this.#door = DatagramDoor.open(this.address, this.port, this.#peers)
    if (this.#door !== undefined) openDoors.add(doorKey(this.address, this.port))
    log('%s port %d: %s', this.address, this.port, this.#door ? 'may be found' : 'cannot be found')
  }

  /** Looks for the receiver, and asks it for a pair. */
  async #ask(destination: Destination): Promise<void> {
    const { address, port } = destination
    destination.isAsking = true
    const channel = await this.#reach(destination).catch(error => void log('%s', (error as Error).message))
    const isPossible = this.isOpen && this.#notes.reason === undefined && channel?.isOpen === true
    // Another user could have taken the name of a door that is not there.
    if (isPossible && channel.isOfOwnUser && this.#open(destination, channel)) return
    destination.isAsking = false
    if (!this.isOpen) return
    destination.waitLonger()
    log('%s port %d: no way there', address, port)
  }

  async #reach({ address, port, receiver }: Destination): Promise<SocketChannel | undefined> {
    const plain = withoutMapping(address)
    if (this.#notes.reason !== undefined || !maySendTo(address, port)) return undefined
    // The kernel would give a marker's answer to another socket of this port.
    if (countUdpSockets(this.port) !== 1) return undefined
    if (receiver !== undefined) return otherEnd(receiver.stream.channel, this.#peers)
    if (reachableOwnAddress(plain) !== plain) {
      const found = await this.#peers.reach(plain, port, plain.includes(':') ? 6 : 4, undefined, 'udp')
      return 'code' in found ? undefined : found.channel
    }
    for (const key of doorKeysTo(plain, port)) {
      if (openDoors.has(key)) return this.#peers.ownChannel()
      const found = await this.#peers.reach(key, port, UNIX)
      if (!('code' in found)) return found.channel
    }
    return undefined
  }

  #open(destination: Destination, channel: SocketChannel): boolean {
    const { address, port } = destination
    const secret = randomBytes(SECRET_SIZE).toString('hex')
    const sender = new DatagramSender({
      sendMarker: kind => this.#sendMarker(encodeMarker(secret, kind), address, port),
      handleOver: wasFast => {
        destination.sender = undefined
        destination.isAsking = false
        if (!wasFast) destination.waitLonger()
      },
    })
    const stream = channel.connect(sender, port, secret, DATAGRAMS)
    if (stream === undefined) return false
    stream.isOfDatagrams = true
    stream.addresses = addressesOf(this, destination)
    sender.stream = stream
    destination.sender = sender
    return true
  }

  #sendMarker(marker: Buffer, address: string, port: number): boolean {
    const Request = this.#requestClass
    const send = (this.address.includes(':') ? nativeSends.v6 : nativeSends.v4) as Send
    if (Request === undefined || !this.isOpen || !mayUseNetwork()) return false
    const isConnected = this.#notes.connectedTo !== undefined
    const attempt = (): number => {
      const request = new Request()
      if (isConnected) return send.call(this.#handle, request, [marker], 1, false)
      return send.call(this.#handle, request, [marker], 1, port, address, false)
    }
    // The first may only report what became of an earlier datagram of a connected socket.
    return makeHidden(() => attempt() > 0 || attempt() > 0)
  }
}

function maySendTo(address: string, port: number): boolean {
  return allowsDatagrams() && decide('client', withoutMapping(address), port).use !== 'tcp'
}

/** Of the channel of this thread to itself each end carries one direction. */
function otherEnd(channel: SocketChannel, peers: Peers): SocketChannel {
  return channel.isLoopback ? peers.ownChannel() : channel
}
