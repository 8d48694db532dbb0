/**
 * A call as two streams of items with back-pressure: what streams, ports and Connect are made of. The receiver of each stream
 * holds at most WINDOW_ITEMS items and WINDOW_BYTES bytes of them (and one item more); when its program has taken half of a window,
 * it grants as much again. So a slow program stops its sender, and nothing else on the link.
 */
import { queueMicrotask } from '../../nic/real-time.ts'
import { heldError, type Link, type LinkCall } from './link.ts'
import { decodeError, type RpcError, rpcError } from './rpc-error.ts'
import {
  type CANCELLED,
  DEADLINE,
  FLAG_EMPTY,
  FLAG_ERROR,
  FLAG_LAST,
  FLAG_OPENER,
  WINDOW_BYTES,
  WINDOW_ITEMS,
} from './rpc-layout.ts'

const NO_BYTES = new Uint8Array(0)

/** One item as it came. */
export interface Item {
  readonly bytes: Uint8Array
  readonly flags: number
}

interface Waiter<T> {
  readonly resolve: (value: T) => void
  readonly reject: (error: Error) => void
}

export class Flow implements LinkCall {
  id = 0
  /** Called soon after an item, the end or a failure has come, outside of handlers. For receivers that are not promises. */
  onNews: (() => void) | undefined
  /** Called once, outside of handlers, when the other side has cancelled the call or the link is over. */
  onStop: ((error: RpcError) => void) | undefined
  private readonly link: Link
  /** FLAG_OPENER if this side has opened the call, else 0. */
  private readonly side: number
  private readonly items: Item[] = []
  private reader: Waiter<Item | undefined> | undefined
  /** The peer sends no more. */
  private hasPeerEnded: boolean
  /** This side sends no more. */
  private hasEnded: boolean
  private failure: RpcError | undefined
  /** Received and not granted anew. */
  private ungrantedItems = 0
  private ungrantedBytes = 0
  /** Of those, what the program has taken. */
  private takenItems = 0
  private takenBytes = 0
  /** What this side may send. */
  private creditItems = WINDOW_ITEMS
  private creditBytes = WINDOW_BYTES
  private readonly senders: Waiter<void>[] = []
  private isNewsDue = false

  constructor(
    link: Link,
    side: 'opener' | 'acceptor',
    ended: { readonly own?: boolean; readonly peer?: boolean } = {},
  ) {
    this.link = link
    this.side = side === 'opener' ? FLAG_OPENER : 0
    this.hasEnded = ended.own ?? false
    this.hasPeerEnded = ended.peer ?? false
  }

  /** The error with which the call has ended, if it has. Items that came before are still there to take. */
  get error(): RpcError | undefined {
    return this.failure
  }

  get heldItems(): number {
    return this.items.length
  }

  /** Nothing will come any more, and all that came is taken. */
  get isDrained(): boolean {
    return this.items.length === 0 && (this.hasPeerEnded || this.failure !== undefined)
  }

  /** The last item that the peer sends has been taken. */
  get hasTakenLast(): boolean {
    return this.hasPeerEnded && this.items.length === 0
  }

  get maySend(): boolean {
    return this.creditItems > 0 && this.creditBytes > 0
  }

  // Receiving.

  /** The next item if it is there. */
  take(): Item | undefined {
    const item = this.items.shift()
    if (item === undefined) return undefined
    this.letGo(item.bytes)
    this.takenItems++
    this.takenBytes += item.bytes.length
    if (this.takenItems >= WINDOW_ITEMS / 2 || this.takenBytes >= WINDOW_BYTES / 2) this.grant()
    return item
  }

  /** The next item; undefined at the end. Rejects if the call has failed. One call at a time. */
  next(): Promise<Item | undefined> {
    const item = this.take()
    if (item !== undefined) return Promise.resolve(item)
    if (this.failure !== undefined) return Promise.reject(this.failure)
    if (this.hasPeerEnded) return Promise.resolve(undefined)
    return new Promise((resolve, reject) => {
      this.reader = { resolve, reject }
    })
  }

  /** Drops what has come and is not taken. */
  discard(): void {
    for (const { bytes } of this.items.splice(0)) this.letGo(bytes)
  }

  // Sending.

  /** Resolves when an item may be sent. Rejects if the call is over. */
  ready(): Promise<void> {
    if (this.failure !== undefined) return Promise.reject(this.failure)
    if (this.maySend) return Promise.resolve()
    return new Promise((resolve, reject) => this.senders.push({ resolve, reject }))
  }

  /** `form`: of `formOf`; without OWN_MEMORY in it the bytes must stay as they are until the call is over. */
  send(bytes: Uint8Array, form = 0): void {
    if (this.hasEnded || this.failure !== undefined) return
    this.creditItems--
    this.creditBytes -= bytes.length
    this.link.sendData(this.id, this.side | form, bytes)
  }

  /** Sends no more, perhaps with a last item. */
  end(last?: Uint8Array): void {
    if (this.hasEnded || this.failure !== undefined) return
    this.hasEnded = true
    this.link.sendData(
      this.id,
      this.side | FLAG_LAST | (last === undefined ? FLAG_EMPTY : 0),
      last ?? NO_BYTES,
    )
    this.forgetIfOver()
  }

  /** Ends the call with an error, which the peer receives after the items that were sent. */
  fail(error: unknown): void {
    if (this.failure !== undefined) return
    this.hasEnded = true
    this.link.sendError(this.id, this.side, error)
    this.stop(rpcError('ERR_RPC_CANCELLED', 'the call has ended with an error'))
  }

  /** The call is over for this side; the peer is told why. */
  cancel(reason: typeof CANCELLED | typeof DEADLINE, error: RpcError): void {
    if (this.failure !== undefined || this.isDone) return
    this.link.sendCancel(this.id, this.side, reason)
    this.discard()
    this.stop(error)
  }

  // For the link.

  handleData(bytes: Uint8Array, flags: number): void {
    if ((flags & FLAG_ERROR) !== 0) return this.stop(decodeError(bytes))
    if (this.hasPeerEnded) return this.violate('an item after the last one')
    if ((flags & FLAG_LAST) !== 0) this.hasPeerEnded = true
    if ((flags & FLAG_EMPTY) === 0) {
      if (this.ungrantedItems >= WINDOW_ITEMS || this.ungrantedBytes >= WINDOW_BYTES) {
        return this.violate('more items than were granted')
      }
      if (this.isLong(bytes) && !this.link.hold(bytes.length)) return this.fail(heldError())
      this.ungrantedItems++
      this.ungrantedBytes += bytes.length
      this.items.push({ bytes, flags })
    }
    if (this.hasPeerEnded) this.forgetIfOver()
    this.wakeReader()
  }

  handleCredit(bytes: number, items: number): void {
    if (bytes < 0 || items < 0) return this.violate(`a credit of ${items} items and ${bytes} bytes`)
    this.creditItems = Math.min(WINDOW_ITEMS, this.creditItems + items)
    this.creditBytes = Math.min(WINDOW_BYTES, this.creditBytes + bytes)
    if (!this.maySend) return
    for (const { resolve } of this.senders.splice(0)) resolve()
  }

  handleCancel(reason: number): void {
    this.stop(cancelError(reason))
  }

  handleLost(error: RpcError): void {
    this.stop(error)
  }

  /** Only what the peer makes this side hold is counted: not the results of our own calls. */
  private isLong({ length }: Uint8Array): boolean {
    return this.side === 0 && length > WINDOW_BYTES
  }

  private letGo(bytes: Uint8Array): void {
    if (this.failure === undefined && this.isLong(bytes)) this.link.letGo(bytes.length)
  }

  private get isDone(): boolean {
    return this.hasEnded && this.hasPeerEnded
  }

  private forgetIfOver(): void {
    if (this.isDone) this.link.forget(this.id, this.side)
  }

  private violate(what: string): void {
    const { link } = this
    link.fail(rpcError('ERR_RPC_PROTOCOL', `${link.peerName} broke the protocol of RPC: ${what}`))
  }

  private stop(error: RpcError): void {
    if (this.failure !== undefined) return
    for (const { bytes } of this.items) this.letGo(bytes)
    this.failure = error
    this.link.forget(this.id, this.side)
    for (const { reject } of this.senders.splice(0)) reject(error)
    this.wakeReader()
    if (this.onStop !== undefined) queueMicrotask(() => this.onStop?.(error))
  }

  private grant(): void {
    this.ungrantedItems -= this.takenItems
    this.ungrantedBytes -= this.takenBytes
    if (!this.hasPeerEnded && this.failure === undefined) {
      this.link.sendCredit(this.id, this.side, this.takenBytes, this.takenItems)
    }
    this.takenItems = 0
    this.takenBytes = 0
  }

  private wakeReader(): void {
    if (this.reader !== undefined) {
      const { resolve, reject } = this.reader
      const item = this.take()
      if (item === undefined && this.failure === undefined && !this.hasPeerEnded) return
      this.reader = undefined
      if (item !== undefined || this.failure === undefined) resolve(item)
      else reject(this.failure)
    }
    if (this.onNews === undefined || this.isNewsDue) return
    this.isNewsDue = true
    queueMicrotask(() => {
      this.isNewsDue = false
      this.onNews?.()
    })
  }
}

export function cancelError(reason: number): RpcError {
  if (reason === DEADLINE) return rpcError('ERR_RPC_DEADLINE', "the caller's time is over")
  return rpcError('ERR_RPC_CANCELLED', 'the caller has cancelled the call')
}
