/**
 * Pairs of UDP sockets past the kernel: a peer that keeps the rules of sockets' channels, and breaks those of datagrams: secrets, markers
 * from anywhere, heads and lengths, limits. The victims are the carrier of a real UDP socket, and a sender.
 */
import dgram from 'node:dgram'
import { once } from 'node:events'
import net from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Peers } from '../../../../fastsockets/connect/peers.ts'
import { SocketCarrier } from '../../../../fastsockets/datagram/carrier.ts'
import {
  COUNT_SIZE,
  DATAGRAM_OVERHEAD,
  encodeMarker,
  HEAD_SIZE,
  LIMIT_MAX,
  PROBE,
  SECRET_SIZE,
  STOP,
  SWITCH,
} from '../../../../fastsockets/datagram/datagram-layout.ts'
import { DatagramSender } from '../../../../fastsockets/datagram/datagram-sender.ts'
import { acceptDatagrams } from '../../../../fastsockets/datagram/index.ts'
import { handleOf } from '../../../../fastsockets/datagram/udp-handles.ts'
import {
  boundHandles,
  type Sender,
  type UdpHandle,
  UdpNotes,
} from '../../../../fastsockets/datagram/udp-notes.ts'
import { DATAGRAMS } from '../../../../fastsockets/host/unix-paths.ts'
import { SocketChannel, type SocketStream } from '../../../../fastsockets/stream/socket-channel.ts'
import type { StreamSink } from '../../../../fastsockets/stream/stream-sink.ts'
import { openLoopbackPair } from '../../../../nic/index.ts'
import { Random } from '../../../support/random.ts'
import { eventually } from '../../../support/until.ts'
import type { Attack, Kind, Victim } from '../kind.ts'
import { spoil } from '../spoil.ts'

/** Inputs over one channel. */
const INPUTS_EACH = 120
const PAIRS_EACH = 4
const NOT_LISTENING = 4
/** Datagrams of a caller that certainly pay for the door. */
const UNTIL_DOOR = 1000
const HERE: Sender = { address: '127.0.0.1', family: 'IPv4', port: 1 }

/** The attacker's end of a stream: reads all, and says nothing of itself. */
const deaf: StreamSink = {
  isReading: true,
  handleData: bytes => bytes.length,
  handleConnected() {},
  handleRefused() {},
  handleEnd() {},
  handleError() {},
  handleWritten() {},
  handleSent() {},
  handleShutdown() {},
}

/** A frame as datagram-layout.ts has it. */
function framed(head: number, bytes: Uint8Array): Buffer {
  const frame = Buffer.alloc(HEAD_SIZE + bytes.length)
  frame.writeUInt32LE(head >>> 0)
  frame.set(bytes, HEAD_SIZE)
  return frame
}

class Receiver implements Victim {
  readonly #socket = dgram.createSocket('udp4')
  readonly #notes = new UdpNotes()
  #handle: UdpHandle | undefined
  #carrier: SocketCarrier | undefined
  #delivered: Buffer[] = []

  async open(): Promise<this> {
    this.#socket.bind(0, '127.0.0.1')
    await once(this.#socket, 'listening')
    const handle = handleOf(this.#socket) as UdpHandle
    const peers = new Peers(acceptDatagrams, net.Socket.prototype.connect as never)
    this.#handle = handle
    this.#notes.onmessage = (_length, _handle, bytes) => this.#delivered.push(bytes)
    this.#carrier = SocketCarrier.open(handle, this.#notes, peers)
    this.#notes.carrier = this.#carrier
    boundHandles.set(handle, this.#notes)
    for (let i = 0; i < UNTIL_DOOR; i++) this.#carrier?.handleReceived(Buffer.from('a caller'), HERE)
    return this
  }

  async attack(attack: Attack): Promise<void> {
    for (let sent = 0; sent < attack.inputs; sent += INPUTS_EACH) {
      await this.#attackReceiver(attack)
      await attackSender(attack)
    }
    // A pair whose SWITCH has not come keeps what it has for a moment.
    await eventually('what pairs have kept', () => this.#carrier?.unreadSize === 0)
  }

  async honest(): Promise<void> {
    const { near, close } = channels()
    const secret = new Random(Date.now()).bytes(SECRET_SIZE).toString('hex')
    const stream = near.connect(deaf, this.#port, secret, DATAGRAMS) as SocketStream
    await eventually('the pair to be accepted', () => stream.isAnswered)
    this.#delivered = []
    for (const kind of [PROBE, SWITCH]) this.#carrier?.handleReceived(encodeMarker(secret, kind), HERE)
    const message = Buffer.from('an honest datagram')
    stream.write([framed(message.length, message)])
    await eventually('the datagram', () => this.#delivered.some(one => one.equals(message)))
    close()
    await nextTurn()
  }

  async close(): Promise<void> {
    boundHandles.delete(this.#handle as UdpHandle)
    this.#carrier?.close()
    this.#notes.row?.close()
    this.#socket.close()
    await once(this.#socket, 'close')
  }

  get #port(): number {
    return this.#socket.address().port
  }

  async #attackReceiver({ random, victim, count, wrong }: Attack): Promise<void> {
    const { near, close } = channels()
    const carrier = this.#carrier as SocketCarrier
    const secrets = Array.from({ length: PAIRS_EACH }, () => random.bytes(SECRET_SIZE).toString('hex'))
    const streams: SocketStream[] = []
    for (const secret of secrets) {
      const port = random.chance(0.9) ? this.#port : random.within(0, 70_000)
      const address = random.chance(0.8)
        ? secret
        : spoil(random, Buffer.from(secret)).toString('latin1').slice(0, 90)
      const stream = near.connect(deaf, port, address, DATAGRAMS)
      if (stream !== undefined) streams.push(stream)
    }
    await turns()
    this.#delivered = []
    for (const secret of secrets)
      for (const kind of [PROBE, SWITCH])
        if (random.chance(0.8)) victim(() => carrier.handleReceived(encodeMarker(secret, kind), HERE))
    const good = new Set<string>()
    for (let i = 0; i < INPUTS_EACH / 2; i++) {
      const stream = random.chance(0.95) ? streams[random.within(0, streams.length - 1)] : undefined
      if (random.chance(0.2) || stream === undefined) {
        const marker = encodeMarker(
          random.pick(secrets as [string]),
          random.pick([PROBE, SWITCH, SWITCH, 3, 0]),
        )
        const spoilt = random.chance(0.8) ? marker : spoil(random, marker)
        const from = { ...HERE, port: random.chance(0.8) ? 1 : random.within(0, 0xffff) }
        if (victim(() => carrier.handleReceived(spoilt, from))) count('marker')
        continue
      }
      if (stream.refusesWrites) continue
      const bytes = random.bytes(random.chance(0.9) ? random.within(0, 300) : random.within(0, 60_000))
      const frame = framed(bytes.length, bytes)
      const isGood = random.chance(0.95)
      if (isGood) good.add(bytes.toString('latin1'))
      victim(() => stream.write([isGood ? frame : spoil(random, frame)]))
      if (random.chance(0.2)) await nextTurn()
      if (carrier.unreadSize > carrier.receiveLimit) wrong(`${carrier.unreadSize} bytes unread`)
    }
    await turns()
    for (const bytes of this.#delivered) if (good.has(bytes.toString('latin1'))) count('datagram')
    for (const stream of streams) count(stream.refusesWrites ? 'pair ended' : 'pair open')
    close()
    await turns()
  }
}

/** A peer that has accepted a pair, and answers with limits of its own taste. */
async function attackSender({ random, victim, count, wrong }: Attack): Promise<void> {
  const accepted: SocketStream[] = []
  const { far, close } = channels(stream => {
    if (random.chance(0.1)) return NOT_LISTENING
    return {
      clientPort: 1,
      begin: () => {
        stream.sink = deaf
        accepted.push(stream)
      },
    }
  })
  let isOver = false
  const sender = new DatagramSender({
    sendMarker: () => random.chance(0.95),
    handleOver: () => {
      isOver = true
    },
  })
  const stream = far.connect(sender, 1, random.bytes(SECRET_SIZE).toString('hex'), DATAGRAMS)
  sender.stream = stream
  await turns()
  const [peer] = accepted
  for (let i = 0; i < INPUTS_EACH / 2 && peer !== undefined && !peer.refusesWrites; i++) {
    const taken = Buffer.alloc(COUNT_SIZE)
    taken.writeUInt32LE(random.chance(0.7) ? random.within(0, 1 << 20) : random.word() >>> 0)
    const limit = random.pick([1 << 20, 1 << 20, 1 << 20, 0, LIMIT_MAX, LIMIT_MAX + 1, 0xffff_fff0, STOP])
    const frame = framed(limit, taken)
    victim(() => peer.write([random.chance(0.97) ? frame : spoil(random, frame)]))
    if (random.chance(0.5)) await nextTurn()
    if (sender.state !== 'fast') continue
    const before = stream?.counts.bytesOut ?? 0
    const bytes = Buffer.alloc(random.within(0, 60_000))
    if (victim(() => sender.send(bytes))) count('sent')
    if ((stream?.counts.bytesOut ?? 0) - before > bytes.length + HEAD_SIZE + DATAGRAM_OVERHEAD)
      wrong('sent twice')
  }
  await turns()
  close()
  await turns()
  if (!isOver) wrong('a sender without a channel goes on')
}

/** The peer's channel, `near`, to the victim's, `far`. */
function channels(accept: ConstructorParameters<typeof SocketChannel>[2] = acceptDatagrams): {
  near: SocketChannel
  far: SocketChannel
  close(): void
} {
  const [one, other] = openLoopbackPair()
  const near = new SocketChannel(one, 'a hostile peer', accept, () => {})
  const far = new SocketChannel(other, 'the victim', accept, () => {})
  const close = (): void => {
    near.close()
    far.close()
  }
  return { near, far, close }
}

async function turns(): Promise<void> {
  for (let i = 0; i < 3; i++) await nextTurn()
}

export const datagrams: Kind = {
  name: 'datagrams',
  what: 'CONNECT, markers, heads and limits of pairs of UDP sockets, to a receiver and a sender',
  reaches: ['marker', 'datagram', 'sent', 'pair ended', 'pair open'],
  open: () => new Receiver().open(),
}
