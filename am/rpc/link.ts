/**
 * The conversation of two endpoints that speak RPC: it numbers calls, cuts payloads into requests of active messages, and puts
 * them together again. One link serves all services, ports and transports between the two. Streams of items are bounded by
 * the calls above (flow.ts); a link keeps what finds no credit or room in a queue of its own.
 */
import type { Clock } from '../../nic/clock.ts'
import { copyBytes, keepFreedMemory, NO_RESOURCE, OK } from '../../nic/index.ts'
import { queueMicrotask } from '../../nic/real-time.ts'
import type { EndpointChannel } from '../endpoint-channel.ts'
import type { Mapping } from '../mapping.ts'
import type { Message } from '../message.ts'
import type { PendingCall } from '../request-log.ts'
import { running } from '../returning-channel.ts'
import type { Tag } from '../tag.ts'
import { Words } from '../words.ts'
import { CallTable } from './call-table.ts'
import { encodeError, type RpcError, rpcError } from './rpc-error.ts'
import {
  CALLS_MAX,
  DIRECTORY,
  FLAG_BYTES,
  FLAG_ERROR,
  FLAG_LAST,
  FLAG_OPENER,
  FORMS,
  HELD_BYTES_MAX,
  KIND_BITS,
  KIND_CANCEL,
  KIND_CREDIT,
  KIND_DATA,
  KIND_HELLO,
  KIND_OPEN,
  MESSAGE_BYTES_MAX,
  OWN_MEMORY,
  QUEUE_BYTES_MAX,
  RPC_HANDLER,
  RPC_VERSION,
} from './rpc-layout.ts'

/** One side of a call. Its methods run within a handler of active messages: they may neither send nor run programs' code. */
export interface LinkCall {
  /** `bytes` are the call's own. `flags`: FLAG_LAST, FLAG_EMPTY, FLAG_ERROR. */
  handleData(bytes: Uint8Array, flags: number): void
  handleCredit(bytes: number, items: number): void
  handleCancel(reason: number): void
  /** The link is over. */
  handleLost(error: RpcError): void
}

/** A call that the peer opens. */
export interface Opened {
  readonly link: Link
  readonly id: number
  readonly flags: number
  readonly service: number
  readonly method: number
  readonly timeoutMs: number
  readonly bytes: Uint8Array
  /** Slot of the request, which `Link.answer` replies to, or -1; see `Link.release`. */
  readonly slot: number
}

/** Runs within a handler, as a `LinkCall` does. Undefined if the call is answered already. */
export type Acceptor = (opened: Opened) => LinkCall | undefined

interface Waiting {
  readonly words: Words
  /** The rest of the payload. */
  readonly bytes: Uint8Array
  /** Bytes of the payload before the rest. */
  readonly start: number
  /** Bytes of the rest that have been sent; -1: not even the message without a payload. */
  position: number
}

const NO_SLOT = -1
const NO_BYTES = new Uint8Array(0)
/** Where the ring is nearly full, pieces of a new payload get as small as this: the rest must be copied. */
const PIECE_MIN = 4096
/** Up to this many bytes zeros cost less than a Buffer that is not pooled. */
const ZEROED_MAX = 4096
/** Words of the message being sent. One object is enough, because sending does not wait. */
const words = new Words()

export class Link {
  readonly peerName: string
  /** The endpoint's time. */
  readonly clock: Clock
  /** Most payload bytes of one request, once the peer has said hello. */
  private pieceMax: number
  private readonly channel: EndpointChannel
  private readonly mapping: Mapping
  private readonly accept: Acceptor
  /** Calls by number: those that this side has opened, and those of the peer. */
  private readonly opened = new CallTable<LinkCall>()
  private readonly accepted = new CallTable<LinkCall>()
  /** Bytes of long payloads that calls of the peer hold, and those of arguments by call. */
  private heldBytes = 0
  private readonly longInputs = new Map<number, number>()
  /** What waits for credit or room, in order. */
  private readonly queue: Waiting[] = []
  private queuedBytes = 0
  private isPumping = false
  /** The payload whose first pieces have come. */
  private partial: { readonly words: Int32Array; readonly bytes: Uint8Array; received: number } | undefined
  private failure: RpcError | undefined
  private readonly greeted: Promise<void>
  private greet: () => void = () => {}
  private refuseGreeting: (error: Error) => void = () => {}
  private readonly overCallbacks = new Set<(error: RpcError) => void>()

  constructor(channel: EndpointChannel, peerTag: Tag, clock: Clock, accept: Acceptor) {
    this.channel = channel
    this.clock = clock
    this.peerName = channel.owner.peerName
    this.mapping = { index: 0, name: this.peerName, tag: peerTag, segment: undefined }
    this.accept = accept
    this.pieceMax = channel.mediumMax
    this.greeted = new Promise((resolve, reject) => {
      this.greet = resolve
      this.refuseGreeting = reject
    })
    this.greeted.catch(() => {})
    channel.onOver = reason => this.fail(lostError(this.peerName, reason))
  }

  /** The error with which the link has ended, if it has. */
  get error(): RpcError | undefined {
    return this.failure
  }

  /** Resolves when the peer has said hello. */
  get isReady(): Promise<void> {
    return this.greeted
  }

  /** Calls `callback` once, soon after the link has ended. The returned function cancels this. */
  onOver(callback: (error: RpcError) => void): () => void {
    this.overCallbacks.add(callback)
    return () => void this.overCallbacks.delete(callback)
  }

  sayHello(tag: Tag): void {
    words.set(5, KIND_HELLO, RPC_VERSION, tag.low, tag.high, this.channel.mediumMax)
    this.push(NO_BYTES)
  }

  /**
   * Opens a call. Returns its number, or throws; then the call has not been opened. With FLAG_BYTES or FLAG_BUFFER in `flags`
   * the bytes may change afterwards, else only once the call is over.
   */
  open(
    call: LinkCall,
    service: number,
    method: number,
    timeoutMs: number,
    flags: number,
    bytes: Uint8Array,
  ): number {
    if (this.failure !== undefined) throw this.failure
    this.assertPayload(bytes)
    const id = this.opened.open(call)
    if (id === 0) {
      throw rpcError('ERR_RPC_EXHAUSTED', `${CALLS_MAX} calls to ${this.peerName} are under way already`)
    }
    words.set(7, KIND_OPEN | FLAG_OPENER | flags, id, bytes.length, 0, service, method, timeoutMs)
    this.push(bytes)
    return id
  }

  /** Sends an item, or the end; `flags` as of `open`. Throws if the payload is too long, or too much waits; does nothing once the link is over. */
  sendData(id: number, flags: number, bytes: Uint8Array): void {
    if (this.failure !== undefined) return
    this.assertPayload(bytes)
    words.set(4, KIND_DATA | flags, id, bytes.length, 0)
    this.push(bytes)
  }

  /** Answers with an error. Never throws. */
  sendError(id: number, flags: number, error: unknown): void {
    if (this.failure !== undefined) return
    const bytes = encodeError(error)
    words.set(4, KIND_DATA | FLAG_LAST | FLAG_ERROR | flags, id, bytes.length, 0)
    this.push(bytes)
  }

  /**
   * Sends a result that is there soon after its call, as the reply to the request: the credit comes back with it. Later results, and
   * those that do not fit into one message, are requests. Throws as `sendData` does.
   */
  answer(slot: number, id: number, bytes: Uint8Array, flag = 0): void {
    if (this.failure !== undefined) return
    if (slot === NO_SLOT || bytes.length > this.pieceMax) {
      this.release(slot)
      return this.sendData(id, FLAG_LAST | flag, bytes)
    }
    words.set(4, KIND_DATA | FLAG_LAST | flag, id, bytes.length, 0)
    this.channel.sendReply(slot, RPC_HANDLER, words, bytes.length === 0 ? undefined : bytes)
  }

  /** The call will be answered later: gives the credit of its request back. */
  release(slot: number): void {
    if (slot !== NO_SLOT) this.channel.release(slot)
  }

  sendCredit(id: number, flags: number, bytes: number, items: number): void {
    if (this.failure !== undefined) return
    words.set(4, KIND_CREDIT | flags, id, bytes, items)
    this.push(NO_BYTES)
  }

  sendCancel(id: number, flags: number, reason: number): void {
    if (this.failure !== undefined) return
    words.set(5, KIND_CANCEL | flags, id, 0, 0, reason)
    this.push(NO_BYTES)
  }

  /** The call is over for this side. `flags`: FLAG_OPENER if this side has opened it. */
  forget(id: number, flags: number): void {
    if ((flags & FLAG_OPENER) !== 0) this.opened.delete(id, true)
    else if (this.accepted.delete(id, false) && this.longInputs.size > 0) {
      this.letGo(this.longInputs.get(id) ?? 0)
      this.longInputs.delete(id)
    }
  }

  /** A call of the peer holds a long payload from now on, until `letGo`. False if the calls of the peer hold too much. */
  hold(bytes: number): boolean {
    if (this.heldBytes + bytes > HELD_BYTES_MAX) return false
    this.heldBytes += bytes
    return true
  }

  letGo(bytes: number): void {
    this.heldBytes -= bytes
  }

  /** Handles one request for `RPC_HANDLER`, within that handler. */
  handleMessage(message: Message): void {
    if (this.failure !== undefined) return
    const { words } = message
    const kind = (words[0] as number) & KIND_BITS
    if (kind === KIND_OPEN || kind === KIND_DATA) this.handlePiece(message)
    else if (kind === KIND_HELLO) this.handleHello(words)
    else if (kind === KIND_CREDIT) this.callOf(words)?.handleCredit(words[2] as number, words[3] as number)
    else if (kind === KIND_CANCEL) this.callOf(words)?.handleCancel(words[4] as number)
    else this.refuse(`a message of kind ${kind}`)
  }

  /** Ends the link: everything under way is lost. */
  fail(error: RpcError): void {
    if (this.failure !== undefined) return
    this.failure = error
    this.refuseGreeting(error)
    this.queue.length = 0
    this.queuedBytes = 0
    this.partial = undefined
    const calls = [...this.opened.clear(), ...this.accepted.clear()]
    for (const call of calls) call.handleLost(error)
    // Not here: these run programs' code.
    queueMicrotask(() => {
      for (const callback of this.overCallbacks) callback(error)
      this.overCallbacks.clear()
    })
  }

  /** Shared by all requests of the link. Most have no reply: then only their credit comes back. */
  private readonly requests: PendingCall = {
    handleReply: message => this.handleAnswer(message),
    handleNoReply: () => {},
    handleReturn: reason => {
      if (reason !== 'NO_SUCH_HANDLER') return this.fail(lostError(this.peerName, reason))
      this.fail(
        rpcError(
          'ERR_RPC_UNIMPLEMENTED',
          `${this.peerName} serves nothing: its program has not called serve()`,
        ),
      )
    },
    handleClosed: () => this.fail(lostError(this.peerName, 'CLOSED')),
  }

  /** A result that came as a reply; of a stranger. */
  private handleAnswer(message: Message): void {
    if (this.failure !== undefined) return
    const { words, length } = message
    const flags = words[0] as number
    const isResult = (flags & ~FORMS) === (KIND_DATA | FLAG_LAST) && words[2] === length
    if (!isResult) return this.refuse('a reply that is no result')
    this.opened.get(words[1] as number)?.handleData(copyOf(message, flags), flags)
  }

  private handleHello(words: Int32Array): void {
    if (words[1] !== RPC_VERSION)
      return this.refuse(`version ${words[1]} of the protocol, not ${RPC_VERSION}`)
    const pieceMax = words[4] as number
    if (pieceMax < 1) return this.refuse(`payloads of ${pieceMax} bytes`)
    this.pieceMax = Math.min(this.channel.mediumMax, pieceMax)
    this.greet()
  }

  private handlePiece(message: Message): void {
    const { words, length } = message
    const total = words[2] as number
    const at = words[3] as number
    if (this.partial === undefined && at === 0 && length === total) {
      return this.handleWhole(words, copyOf(message, words[0] as number), message)
    }
    if (at === 0 && this.partial === undefined) {
      if (total < length || total > MESSAGE_BYTES_MAX || length === 0) {
        return this.refuse(`a payload of ${total} bytes`)
      }
      keepFreedMemory()
      this.partial = { words: words.slice(), bytes: memoryFor(total, words[0] as number), received: 0 }
    }
    const { partial } = this
    if (
      partial === undefined ||
      at !== partial.received ||
      length === 0 ||
      length > partial.bytes.length - at
    ) {
      return this.refuse(`a piece of ${length} bytes at ${at}`)
    }
    // The one copy at the receiver: into the memory that the program is given.
    copyBytes(message.bytes, message.offset, partial.bytes, at, length)
    partial.received += length
    if (partial.received < partial.bytes.length) return
    this.partial = undefined
    this.handleWhole(partial.words, partial.bytes, message)
  }

  private handleWhole(words: Int32Array, bytes: Uint8Array, message: Message): void {
    const flags = words[0] as number
    if ((flags & KIND_BITS) === KIND_DATA) return this.callOf(words)?.handleData(bytes, flags)
    const id = words[1] as number
    if (!this.accepted.isFree(id)) return this.refuse(`call ${id} has the place of another one`)
    const [service, method, timeoutMs] = [words[4] as number, words[5] as number, words[6] as number]
    const isLong = bytes.length > this.channel.mediumMax
    if (isLong && !this.hold(bytes.length)) return this.sendError(id, 0, heldError())
    // Deferred: the program's handler runs outside of this one, and may answer at once.
    const slot = service !== DIRECTORY && (flags & FLAG_LAST) !== 0 ? message.defer() : NO_SLOT
    const call = this.accept({ link: this, id, flags, service, method, timeoutMs, bytes, slot })
    if (call !== undefined) this.accepted.accept(id, call)
    if (isLong && call !== undefined) this.longInputs.set(id, bytes.length)
    else if (isLong) this.letGo(bytes.length)
  }

  /** Undefined if this side has finished with the call: what still comes for it is dropped. */
  private callOf(words: Int32Array): LinkCall | undefined {
    const id = words[1] as number
    return ((words[0] as number) & FLAG_OPENER) !== 0 ? this.accepted.get(id) : this.opened.get(id)
  }

  private refuse(what: string): void {
    this.fail(rpcError('ERR_RPC_PROTOCOL', `${this.peerName} broke the protocol of RPC: ${what}`))
  }

  private assertPayload({ length }: Uint8Array): void {
    if (length > MESSAGE_BYTES_MAX) {
      throw rpcError('ERR_RPC_PAYLOAD', `a payload of ${length} bytes; the most is ${MESSAGE_BYTES_MAX}`)
    }
    if (length + this.queuedBytes > QUEUE_BYTES_MAX) {
      throw rpcError('ERR_RPC_EXHAUSTED', `${this.queuedBytes} bytes wait for ${this.peerName} already`)
    }
  }

  /** Sends the message in `words`: now what can be sent now, if nothing waits; the rest in order. */
  private push(bytes: Uint8Array): void {
    const { queue } = this
    let position = 0
    if (queue.length === 0 && running.channels === 0) {
      position = this.send(words, bytes, 0, 0, PIECE_MIN)
      if (position === bytes.length) return
    }
    const start = Math.max(0, position)
    const rest = start === 0 ? bytes : bytes.subarray(start)
    const isOwn = ((words.values[0] as number) & OWN_MEMORY) !== 0
    queue.push({
      words: words.copy(),
      bytes: isOwn ? new Uint8Array(rest) : rest,
      start,
      position: position - start,
    })
    this.queuedBytes += rest.length
    this.pumpLater()
  }

  /**
   * Sends pieces from `from` on; returns where it stopped: -1 if that is before an empty payload. `start`: bytes of the payload
   * that were sent before `bytes`. Pieces that find no room are halved down to `pieceMin`.
   */
  private send(head: Words, bytes: Uint8Array, start: number, from: number, pieceMin: number): number {
    const { length } = bytes
    const { channel } = this
    let size = this.pieceMax
    let at = from
    do {
      const end = Math.min(length, at + size)
      if (start + at > 0) head.values[3] = start + at
      const piece = length === 0 ? undefined : end - at === length ? bytes : bytes.subarray(at, end)
      const status = channel.send(this.mapping, RPC_HANDLER, head, piece, this.requests)
      if (status === OK) at = end
      else if (status === NO_RESOURCE && end - at > pieceMin) size = (end - at) >> 1
      else return length === 0 ? -1 : at
    } while (at < length)
    return at
  }

  private pumpLater(): void {
    if (this.isPumping) return
    this.isPumping = true
    queueMicrotask(() => void this.pump())
  }

  /** Sends what waits, in order, as credit and room allow. */
  private async pump(): Promise<void> {
    const { queue, channel } = this
    while (this.failure === undefined) {
      const first = queue[0]
      if (first === undefined) break
      if (running.channels === 0) {
        const { words, bytes, start, position } = first
        first.position = this.send(words, bytes, start, Math.max(position, 0), this.pieceMax)
        if (first.position === bytes.length) {
          queue.shift()
          this.queuedBytes -= bytes.length
          continue
        }
      }
      const waiter = channel.waiters.wait()
      channel.touch()
      try {
        await waiter.promise
      } catch {
        break // The endpoint closes.
      } finally {
        waiter.forget()
      }
    }
    this.isPumping = false
  }
}

/** The payload of a message, owned by the call. With FLAG_BYTES it is what the program receives: aligned, in memory of its own. */
function copyOf({ bytes, offset, length }: Message, flags: number): Uint8Array {
  const copy = memoryFor(length, flags)
  copyBytes(bytes, offset, copy, 0, length)
  return copy
}

/** Not filled with zeros where that costs. */
function memoryFor(length: number, flags: number): Uint8Array {
  if ((flags & FLAG_BYTES) === 0) return Buffer.allocUnsafe(length)
  return length <= ZEROED_MAX ? new Uint8Array(length) : new Uint8Array(Buffer.allocUnsafeSlow(length).buffer)
}

export function heldError(): RpcError {
  return rpcError(
    'ERR_RPC_EXHAUSTED',
    `long payloads of the calls of one peer are held up to ${HELD_BYTES_MAX} bytes`,
  )
}

export function lostError(peerName: string, reason: string): RpcError {
  const why: Readonly<Record<string, string>> = {
    PEER_DEAD: 'its process has ended, or the connection to it',
    PEER_CLOSED: 'it has closed its endpoint',
    CLOSED: 'this side has closed its endpoint, or unmapped it',
    BAD_TAG: 'it refuses our tag',
    NO_SUCH_ENDPOINT: 'no endpoint answers to that name',
  }
  return rpcError('ERR_RPC_UNAVAILABLE', `${peerName} cannot be called: ${why[reason] ?? reason}`, { reason })
}
