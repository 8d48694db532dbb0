import { AGAIN_PRICE_MAX_US, AGAIN_PRICE_US, FIND_PRICE_US } from '../promotion/price.ts'
import type { DatagramReceiver } from './datagram-receiver.ts'
import type { DatagramSender } from './datagram-sender.ts'

/** An address of this host with which a socket has exchanged datagrams. */
export class Destination {
  readonly address: string
  readonly port: number
  /** Carries what is sent there; undefined while the kernel does. */
  sender: DatagramSender | undefined
  /** Carries what comes from there. */
  receiver: DatagramReceiver | undefined
  /** A search for the way there, or the opening of a pair, is under way. */
  isAsking = false
  /**
   * The first datagram that we know of came from there. It most likely knows our socket and opens the pair, so that its own receiver is
   * found through its channel; a socket that was older than its carrier may have sent first all the same.
   */
  readonly isCaller: boolean
  #paidUs = 0
  #priceUs: number
  #againUs = AGAIN_PRICE_US

  /** `isFast`: the first datagram to a socket that is no caller pays. */
  constructor(address: string, port: number, isCaller: boolean, isFast: boolean) {
    this.address = address
    this.port = port
    this.isCaller = isCaller
    this.#priceUs = isCaller ? AGAIN_PRICE_US : isFast ? 0 : FIND_PRICE_US
  }

  /** True if the kernel's road has cost as much as a search. */
  pay(us: number): boolean {
    this.#paidUs += us
    return this.#paidUs >= this.#priceUs
  }

  /** The way is known: the next datagram looks for it. */
  payAll(): void {
    this.#priceUs = 0
  }

  /** The search was in vain: the next one comes later. */
  waitLonger(): void {
    this.#paidUs = 0
    this.#priceUs = this.#againUs
    this.#againUs = Math.min(this.#againUs * 2, AGAIN_PRICE_MAX_US)
  }
}
