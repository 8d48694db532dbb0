/**
 * One end of a connection of simulated hosts, by layer: frames of the NIC, one-way active messages, raw sockets, message
 * sockets. All but the first are the product's own code. A program polls them; none of them waits.
 */
import { type Channel, ChannelGroup, EventLoop } from '../../am/channels.ts'
import { FastMessageSocket } from '../../fastsockets/raw/fast-message-socket.ts'
import { FastRawSocket } from '../../fastsockets/raw/fast-raw-socket.ts'
import { type ChannelHost, rawHost } from '../../fastsockets/stream/channel-host.ts'
import { type Acceptor, SocketChannel } from '../../fastsockets/stream/socket-channel.ts'
import type { StreamAddresses } from '../../fastsockets/stream/stream-addresses.ts'
import { copyBytes, type FrameSink } from '../../nic/index.ts'
import type { SimulatedInterface } from '../../nic/simulated/index.ts'

export type Layer = 'nic' | 'am' | 'stream' | 'message'

export interface Port {
  readonly end: SimulatedInterface
  /** Sends as much of `bytes` as there is room for; returns how much. */
  trySend(bytes: Uint8Array): number
  /** Returns how many bytes were received, or undefined. */
  tryRecv(into: Uint8Array): number | undefined
  /** Takes one message in, without a receive that it could go to. */
  look(): void
  /** Received bytes that went through a buffer of the socket: each was copied once more. */
  readonly bytesBuffered: number
  close(): void
}

const HANDLER = 1
const SERVER_PORT = 80
const CLIENT_PORT = 1024
const POLL_LIMIT = 64

export function openPorts(
  layer: Layer,
  ends: readonly [SimulatedInterface, SimulatedInterface],
): [Port, Port] {
  const [near, far] = ends
  if (layer === 'nic') return [new NicPort(near), new NicPort(far)]
  if (layer === 'am') return [new AmPort(near), new AmPort(far)]
  return openSockets(layer, near, far)
}

class NicPort implements Port, FrameSink {
  readonly end: SimulatedInterface
  readonly bytesBuffered = 0
  #received: number | undefined

  constructor(end: SimulatedInterface) {
    this.end = end
  }

  trySend(bytes: Uint8Array): number {
    const count = Math.min(bytes.length, this.end.capabilities.frameMax)
    if (this.end.reserve(count) < 0) return 0
    this.end.commit(count)
    return count
  }

  tryRecv(): number | undefined {
    this.#received = undefined
    this.end.poll(this, 1)
    return this.#received
  }

  look(): void {}

  handleFrame(_bytes: Uint8Array, _offset: number, length: number): void {
    this.#received = length
  }

  close(): void {
    this.end.close()
  }
}

class AmPort implements Port {
  readonly end: SimulatedInterface
  readonly #group: ChannelGroup
  readonly #channel: Channel
  readonly bytesBuffered = 0
  #received: number | undefined

  constructor(end: SimulatedInterface) {
    this.end = end
    this.#group = manualGroup()
    this.#group.handlers.setOneWay(HANDLER, (_words, _count, _bytes, _offset, length) => {
      this.#received = length
    })
    this.#channel = this.#group.attach(end, { owner: quietOwner(end) })
  }

  trySend(bytes: Uint8Array): number {
    const count = Math.min(bytes.length, this.#channel.mediumMax)
    const at = this.#channel.reserveOneWay(HANDLER, 2, 0, 0, 0, 0, count)
    if (at < 0) return 0
    copyBytes(bytes, 0, this.#channel.sendBytes, at, count)
    this.#channel.commitOneWay(count)
    return count
  }

  tryRecv(): number | undefined {
    this.#received = undefined
    this.#channel.progress(1)
    return this.#received
  }

  look(): void {}

  close(): void {
    this.#group.close()
  }
}

function openSockets(
  layer: 'stream' | 'message',
  near: SimulatedInterface,
  far: SimulatedInterface,
): [Port, Port] {
  const make = layer === 'stream' ? () => new FastRawSocket() : () => new FastMessageSocket()
  const client = make()
  const server = make()
  const accept = (stream: Parameters<typeof server.adopt>[0]) => {
    server.adopt(stream)
    return { clientPort: CLIENT_PORT, begin() {} }
  }
  const clientChannel = openChannel(near, 'the server', () => 0)
  const serverChannel = openChannel(far, 'the client', accept)
  let isConnected = false
  client.open(clientChannel, newAddresses(), (_refusal, isOpen) => {
    isConnected = isOpen
  })
  const { timeline } = near.host
  while (!isConnected) {
    if (!timeline.step()) throw new Error('the sockets do not connect')
    serverChannel.pollNow(POLL_LIMIT)
    clientChannel.pollNow(POLL_LIMIT)
  }
  return [socketPort(client, clientChannel, near), socketPort(server, serverChannel, far)]
}

function socketPort(
  socket: FastRawSocket | FastMessageSocket,
  channel: SocketChannel,
  end: SimulatedInterface,
): Port {
  const trySend =
    socket instanceof FastRawSocket
      ? (bytes: Uint8Array): number => socket.trySend(bytes)
      : (bytes: Uint8Array): number => (socket.trySend(bytes) ? bytes.length : 0)
  return {
    end,
    trySend,
    tryRecv(into) {
      const count = socket.tryRecv(into)
      if (count === 0 || count === -1) throw new Error('the peer has ended')
      return count
    },
    look() {
      channel.pollNow(1)
    },
    get bytesBuffered() {
      return socket.transport.counts?.bytesBuffered ?? 0
    },
    close() {
      socket.close()
      channel.close()
    },
  }
}

/** A channel of raw sockets in virtual time. Its programs poll: no turn of an event loop runs. */
export function openChannel(end: SimulatedInterface, peer: string, accept: Acceptor): SocketChannel {
  const clock = { ...end.host.clock, setImmediate: () => {} }
  const host: ChannelHost = {
    ...rawHost,
    clock,
    eventLoop: new EventLoop(clock),
    offerMinOf: () => Number.POSITIVE_INFINITY,
  }
  return new SocketChannel(end, peer, accept, () => {}, true, undefined, undefined, host)
}

/** Progress by hand: no event loop runs in virtual time. */
export function manualGroup(): ChannelGroup {
  return new ChannelGroup({ progress: 'manual' })
}

export function quietOwner(end: SimulatedInterface) {
  return {
    peerName: `host ${end.peer?.host.number}`,
    destination: undefined,
    handleProgress() {},
    roomWanted: () => 0,
    handleBroken(error: Error): never {
      throw error
    },
  }
}

export function newAddresses(): StreamAddresses {
  return {
    address: '10.0.0.2',
    source: '10.0.0.1',
    family: 'IPv4',
    serverPort: SERVER_PORT,
    clientPort: 0,
  }
}
