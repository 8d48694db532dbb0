/**
 * A connection of a kernel's TCP between two processes, beside the NIC: bytes in order, a send buffer and a receive buffer at each
 * end, FIN, RST. A partition delays it. What the application of an end does follows RFC 9293, and tcp(7) where Linux goes further:
 *
 *   near end                                            far end
 *   send -> send buffer -> segments, one way each ----> receive buffer -> receive
 *           room: onChange                              something to receive: onChange
 */
import type { SimulatedHost } from './simulated-host.ts'
import type { SimulatedNetwork } from './simulated-network.ts'

/** One way between two processes, and between two attempts across a partition. */
const ONE_WAY_US = 50
const RETRY_US = 200_000
const SEGMENT_MAX = 16 * 1024
/** Buffers from so many bytes on, as the seed has it: small ones are full at times. */
const BUFFER_MIN = 4096
const BUFFER_MAX = 128 * 1024

/** `reset`: the connection is broken, by RST or because the other end is silent. */
export type TcpState = 'open' | 'reset' | 'closed'

export class SimulatedTcp {
  readonly host: SimulatedHost
  other!: SimulatedTcp
  state: TcpState = 'open'
  /** Called in the process: bytes, an end or a reset to receive, or room to send. */
  onChange: () => void = () => {}
  /** The end of the other side is the next to receive. */
  #hasFin = false
  /** The application sends no more. */
  #isShut = false
  #hasSentFin = false
  #isMoving = false
  readonly #toSend: Uint8Array[] = []
  #toSendLength = 0
  readonly #received: Uint8Array[] = []
  #receivedLength = 0
  readonly #sendMax: number
  readonly #receiveMax: number
  readonly #network: SimulatedNetwork

  constructor(network: SimulatedNetwork, host: SimulatedHost) {
    this.#network = network
    this.host = host
    this.#sendMax = network.random.within(BUFFER_MIN, BUFFER_MAX)
    this.#receiveMax = network.random.within(BUFFER_MIN, BUFFER_MAX)
  }

  /** Two connected ends. */
  static pair(
    network: SimulatedNetwork,
    near: SimulatedHost,
    far: SimulatedHost,
  ): [SimulatedTcp, SimulatedTcp] {
    const ends: [SimulatedTcp, SimulatedTcp] = [
      new SimulatedTcp(network, near),
      new SimulatedTcp(network, far),
    ]
    ends[0].other = ends[1]
    ends[1].other = ends[0]
    return ends
  }

  /** Bytes of the other side that can be received, or its end. */
  get isReadable(): boolean {
    return this.#receivedLength > 0 || this.#hasFin || this.state === 'reset'
  }

  /** Copies as many of the bytes as the send buffer has room for; returns how many. */
  send(bytes: Uint8Array): number {
    const length = Math.min(bytes.length, this.#sendMax - this.#toSendLength)
    if (length <= 0 || this.state !== 'open' || this.#isShut) return 0
    this.#toSend.push(new Uint8Array(bytes.subarray(0, length)))
    this.#toSendLength += length
    this.#moveSoon(ONE_WAY_US)
    return length
  }

  /** FIN, behind all that was sent. */
  shutdown(): void {
    this.#isShut = true
    this.#moveSoon(ONE_WAY_US)
  }

  /** At most `lengthMax` bytes; none at the end of the other side; undefined if there is nothing to receive now. */
  receive(lengthMax: number): Uint8Array | undefined {
    const [first] = this.#received
    if (first === undefined) return this.#hasFin ? new Uint8Array(0) : undefined
    const bytes = first.subarray(0, lengthMax)
    if (bytes.length < first.length) this.#received[0] = first.subarray(bytes.length)
    else this.#received.shift()
    this.#receivedLength -= bytes.length
    // The window opens.
    this.other.#moveSoon(ONE_WAY_US)
    return bytes
  }

  /** The application closes its end: a reset if it has not received all (RFC 9293, 3.10.4; RFC 2525, 2.17). */
  close(): void {
    if (this.state === 'closed') return
    if (this.state === 'reset') return this.#forget()
    if (this.#receivedLength > 0) return this.reset()
    this.state = 'closed'
    this.shutdown()
  }

  /** Nothing of what waits to be sent arrives. */
  reset(): void {
    const wasOpen = this.state !== 'reset'
    this.#forget()
    if (wasOpen) this.#carry(ONE_WAY_US, () => this.other.lose())
  }

  /** The connection is broken. What was received can still be (tcp_reset of Linux). */
  lose(): void {
    if (this.state !== 'open') return
    this.state = 'reset'
    this.#toSend.length = this.#toSendLength = 0
    this.#notify()
  }

  #forget(): void {
    this.state = 'closed'
    this.#hasSentFin = true
    this.#toSend.length = this.#toSendLength = this.#received.length = this.#receivedLength = 0
  }

  #moveSoon(delayUs: number): void {
    if (this.#isMoving || (this.#toSendLength === 0 && (!this.#isShut || this.#hasSentFin))) return
    this.#isMoving = true
    this.#carry(delayUs, () => this.#move())
  }

  /** One segment reaches the other end. */
  #move(): void {
    this.#isMoving = false
    const { other } = this
    if (this.state === 'reset') return
    const room = other.#receiveMax - other.#receivedLength
    const [first] = this.#toSend
    if (first === undefined) {
      if (!this.#isShut || this.#hasSentFin) return
      this.#hasSentFin = true
      if (other.state !== 'open') return
      this.#network.note(0)
      other.#hasFin = true
      return other.#notify()
    }
    // No application receives it: the kernel answers with RST, and drops what the other end had to send.
    if (other.state !== 'open') {
      other.#forget()
      return this.lose()
    }
    if (room <= 0) return
    const bytes = first.subarray(0, Math.min(room, this.#network.random.within(1, SEGMENT_MAX)))
    if (bytes.length < first.length) this.#toSend[0] = first.subarray(bytes.length)
    else this.#toSend.shift()
    this.#toSendLength -= bytes.length
    this.#network.note(bytes.length)
    other.#received.push(bytes)
    other.#receivedLength += bytes.length
    other.#notify()
    this.#notify()
    this.#moveSoon(1)
  }

  #notify(): void {
    this.host.post(0, () => this.onChange())
  }

  /** Across a partition the kernel tries again. A dead NIC carries nothing. */
  #carry(delayUs: number, arrive: () => void): void {
    const { timeline } = this.#network
    const go = (): void => {
      const { counters } = this.#network
      if (this.host.isCutOff || this.other.host.isCutOff) {
        counters.deadEnds++
        return
      }
      if (!this.#network.isCut(this.host, this.other.host)) return arrive()
      counters.partitioned++
      timeline.schedule(timeline.nowUs + RETRY_US, go)
    }
    timeline.schedule(this.host.nowUs + delayUs, go)
  }
}
