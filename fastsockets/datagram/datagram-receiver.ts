/**
 * Receives the datagrams of one pair over a stream, and gives them to the socket in the turn's delivery phase: the receiving
 * end (datagram-layout.ts).
 */
import { copyBytes } from '../../nic/index.ts'
import { clearTimeout, setImmediate, setTimeout } from '../../nic/real-time.ts'
import { allocateFresh } from '../host/fresh-memory.ts'
import { drainTicks } from '../host/node-internals.ts'
import type { SocketStream } from '../stream/socket-channel.ts'
import type { StreamAddresses } from '../stream/stream-addresses.ts'
import type { StreamSink } from '../stream/stream-sink.ts'
import {
  DATAGRAM_MAX,
  DATAGRAM_OVERHEAD,
  HEAD_SIZE,
  LIMIT_MAX,
  REPORTS_PER_LIMIT,
  STOP,
} from './datagram-layout.ts'
import { readHead, sendLimit } from './datagram-sender.ts'
import type { Sender } from './udp-notes.ts'

/** A pair whose PROBE has not come by then is given up. */
const PROBE_MS = 2000
/**
 * For how long datagrams are kept back if the SWITCH does not come, because the kernel has dropped it; longer if its queue
 * still has datagrams of this sender.
 */
const SWITCH_MS = 100
/** Datagrams of one pair that are delivered in one turn: the kernel's sockets and the timers come in between. */
const DELIVERED_MAX = 256
const NOTHING = Buffer.alloc(0)

/** What a receiver needs of its socket. */
export interface ReceivingSocket {
  /** Bytes that it keeps unread at most. */
  readonly receiveLimit: number
  /** Bytes that it keeps now; the receivers of all pairs count here. */
  unreadSize: number
  readonly isOpen: boolean
  readonly address: string
  readonly port: number
  deliver(bytes: Buffer, sender: Sender): void
  handleReceiverOver(receiver: DatagramReceiver): void
}

export class DatagramReceiver implements StreamSink {
  readonly isReading = true
  readonly stream: SocketStream
  /** As the kernel has reported it with the PROBE; undefined before. */
  sender: Sender | undefined

  #socket: ReceivingSocket | undefined
  readonly #onOver: () => void
  readonly #queue: Buffer[] = []
  #next = 0
  #isSwitched = false
  /** Datagrams of this sender that the kernel has delivered. */
  #kernelCount = 0
  /** What the sender's datagrams have counted that are delivered or dropped; what of it the sender knows. */
  #takenSize = 0
  #reportedSize = 0
  #isScheduled = false
  #hasEnded = false
  #isOver = false
  #isLimitOwed = false
  #hasStopped = false
  #timer: NodeJS.Timeout

  constructor(stream: SocketStream, onOver: () => void) {
    this.stream = stream
    this.#onOver = onOver
    this.#timer = setTimeout(() => this.#end(), PROBE_MS).unref()
  }

  /** The PROBE has come to `socket`. */
  handleProbe(socket: ReceivingSocket, sender: Sender): void {
    if (this.sender !== undefined || this.#isOver) return
    this.sender = sender
    this.#socket = socket
    clearTimeout(this.#timer)
    const { stream } = this
    stream.addresses = addressesOf(sender, socket)
    stream.channel.show(stream, stream.windowLeft)
    this.sendLimit()
  }

  /** Every earlier datagram has come out of the kernel's queue. */
  handleSwitch(): void {
    if (this.#isSwitched) return
    this.#isSwitched = true
    clearTimeout(this.#timer)
    if (this.#queue.length > 0) this.#schedule()
    else if (this.#hasEnded) this.#end()
  }

  /** Tells the sender what this socket keeps at most. */
  sendLimit(): void {
    if (this.sender === undefined || this.#isOver) return
    const limit = this.#hasStopped ? STOP : Math.min(this.#socket?.receiveLimit ?? 0, LIMIT_MAX)
    this.#isLimitOwed = !sendLimit(this.stream, limit, this.#takenSize)
    if (!this.#isLimitOwed) this.#reportedSize = this.#takenSize
    if (this.#isLimitOwed) this.stream.scheduleSend()
  }

  /** The sender is to use the kernel again. What it has sent before is delivered. */
  stop(): void {
    this.#hasStopped = true
    if (this.sender === undefined) this.#end()
    else this.sendLimit()
  }

  /**
   * The kernel has a datagram of the same sender. Before the SWITCH it is an earlier one; after it the sender uses the kernel again:
   * what has arrived over the stream is delivered first.
   */
  handleKernelDatagram(): void {
    this.#kernelCount++
    if (this.#isOver || !this.#isSwitched) return
    this.stream.channel.pollNow(Number.MAX_SAFE_INTEGER)
    while (this.#next < this.#queue.length) this.#deliverSome()
    this.stream.channel.scheduleTurn()
  }

  close(): void {
    this.#end()
  }

  // The methods of `StreamSink`.

  /** A DATAGRAM. Hot. */
  place(bytes: Uint8Array, offset: number, length: number): number {
    const socket = this.#socket
    const size = length - HEAD_SIZE
    if (socket === undefined || size < 0 || size > DATAGRAM_MAX || readHead(bytes, offset) !== size) {
      this.#end()
      return length
    }
    if (
      socket.unreadSize + size + DATAGRAM_OVERHEAD > socket.receiveLimit ||
      this.stream.channel.unread.isOverBudget()
    ) {
      this.stream.counts.countDropped(1)
      this.#take(size + DATAGRAM_OVERHEAD)
      return length
    }
    const datagram = allocateFresh(size)
    copyBytes(bytes, offset + HEAD_SIZE, datagram, 0, size)
    this.#addUnread(socket, size + DATAGRAM_OVERHEAD)
    this.#queue.push(datagram)
    if (this.#isSwitched) this.#schedule()
    else if (this.#queue.length === 1) this.#awaitSwitch()
    return length
  }

  handleData(bytes: Buffer): number {
    return this.place(bytes, 0, bytes.length)
  }

  handleArrival(): void {
    this.#isScheduled = false
    if (!this.#isSwitched) return
    this.#deliverSome()
    if (this.#next < this.#queue.length) this.#schedule()
    else if (this.#hasEnded) this.#end()
  }

  handleRoom(): boolean {
    if (this.#isLimitOwed) this.sendLimit()
    return !this.#isLimitOwed
  }

  /** The sender has closed its socket, or has died: what it has sent is delivered. */
  handleEnd(): void {
    this.#hasEnded = true
    if (this.sender === undefined || this.#queue.length === 0) this.#end()
  }

  handleError(): void {
    this.handleEnd()
  }

  handleRefused(): void {
    this.#end()
  }

  handleConnected(): void {}

  handleWritten(): void {}

  handleSent(): void {}

  handleShutdown(): void {}

  /** A listener that throws has received its datagram: the next ones follow. */
  #deliverSome(): void {
    const socket = this.#socket as ReceivingSocket
    const queue = this.#queue
    const end = Math.min(queue.length, this.#next + DELIVERED_MAX)
    try {
      while (!this.#isOver && this.#next < end && socket.isOpen) {
        const bytes = queue[this.#next] as Buffer
        queue[this.#next++] = NOTHING
        this.#addUnread(socket, -bytes.length - DATAGRAM_OVERHEAD)
        this.#take(bytes.length + DATAGRAM_OVERHEAD)
        this.stream.counts.countDatagram()
        socket.deliver(bytes, this.sender as Sender)
        drainTicks()
      }
    } finally {
      if (this.#next === queue.length) {
        queue.length = 0
        this.#next = 0
      } else if (this.#next >= DELIVERED_MAX) {
        queue.splice(0, this.#next)
        this.#next = 0
      }
    }
  }

  #take(size: number): void {
    this.#takenSize = (this.#takenSize + size) >>> 0
    const due = (this.#socket as ReceivingSocket).receiveLimit / REPORTS_PER_LIMIT
    if ((this.#takenSize - this.#reportedSize) >>> 0 >= due && !this.#isLimitOwed) this.sendLimit()
  }

  #addUnread(socket: ReceivingSocket, size: number): void {
    socket.unreadSize += size
    this.stream.channel.unread.noteKept(size)
  }

  #awaitSwitch(): void {
    this.#timer = setTimeout(() => {
      const before = this.#kernelCount
      afterIo(() => {
        if (this.#isOver || this.#isSwitched) return
        if (this.#kernelCount === before) this.handleSwitch()
        else this.#awaitSwitch()
      })
    }, SWITCH_MS).unref()
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    this.stream.scheduleDelivery()
  }

  #end(): void {
    if (this.#isOver) return
    this.#isOver = true
    clearTimeout(this.#timer)
    const socket = this.#socket
    if (socket !== undefined)
      for (const { length } of this.#queue.splice(this.#next))
        this.#addUnread(socket, -length - DATAGRAM_OVERHEAD)
    this.#queue.length = 0
    this.#next = 0
    this.stream.close(false)
    this.#onOver()
    socket?.handleReceiverOver(this)
  }
}

/** `sender` is the client. */
export function addressesOf(
  sender: Pick<Sender, 'address' | 'port'>,
  receiver: Pick<Sender, 'address' | 'port'>,
): StreamAddresses {
  return {
    address: receiver.address,
    source: sender.address,
    family: receiver.address.includes(':') ? 'IPv6' : 'IPv4',
    serverPort: receiver.port,
    clientPort: sender.port,
  }
}

/** The event loop may be late: by then it has looked at the kernel's queue. */
function afterIo(action: () => void): void {
  setImmediate(() => setImmediate(action))
}
