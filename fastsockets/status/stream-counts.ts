import {
  BYTES_BUFFERED,
  BYTES_FETCHED,
  BYTES_IN,
  BYTES_OUT,
  BYTES_TAKEN,
  BYTES_WAITING,
  COUNTS_LENGTH,
  ENDED_BY_PEER,
  ENDED_HERE,
  PEER_FETCHED,
  PEER_TAKEN,
  PEER_WINDOW,
  STREAM_STATE,
} from './status-layout.ts'
import { addTo, type StatusRow } from './status-page.ts'

export interface StreamCounters {
  /** Of the bytes received, those that found no receive posted, and went through the receive buffer. */
  readonly bytesBuffered: number
  /** Of the bytes received, and of those sent, those that were fetched straight from the writer's memory. */
  readonly zcopyBytesIn: number
  readonly zcopyBytesOut: number
}

/** The counters before the connection is open: all 0, never written. */
const NOTHING_COUNTED = new Float64Array(COUNTS_LENGTH)

interface Totals extends StreamCounters {
  readonly bytesIn: number
  readonly bytesOut: number
}

/**
 * The counters of one stream: on the status page while the connection is open; afterwards a copy of their last
 * values.
 */
export class StreamCounts {
  #words: Float64Array = NOTHING_COUNTED
  #row: StatusRow | undefined
  #atEnd: Totals | undefined

  get bytesIn(): number {
    return this.#atEnd?.bytesIn ?? (this.#words[BYTES_IN] as number)
  }

  get bytesOut(): number {
    return this.#atEnd?.bytesOut ?? (this.#words[BYTES_OUT] as number)
  }

  snapshot(): StreamCounters {
    const { bytesBuffered, zcopyBytesIn, zcopyBytesOut } = this.#atEnd ?? this.#totals()
    return { bytesBuffered, zcopyBytesIn, zcopyBytesOut }
  }

  #totals(): Totals {
    return {
      bytesIn: this.#words[BYTES_IN] as number,
      bytesOut: this.#words[BYTES_OUT] as number,
      bytesBuffered: this.#words[BYTES_BUFFERED] as number,
      zcopyBytesIn: this.#words[BYTES_FETCHED] as number,
      zcopyBytesOut: this.#words[PEER_FETCHED] as number,
    }
  }

  /** The connection is open, and the peer's receive buffer has `window` bytes. */
  open(row: StatusRow, window: number): void {
    this.#row = row
    this.#words = row.counts
    this.grant(window)
  }

  get isOpen(): boolean {
    return this.#row !== undefined
  }

  /** The peer's receive buffer has another size. */
  grant(window: number): void {
    this.#words[PEER_WINDOW] = window
  }

  /** False if the connection was never open, or is closed. */
  close(): boolean {
    if (this.#row === undefined) return false
    this.#atEnd = this.#totals()
    this.#row.close()
    this.#words = this.#row.counts
    this.#row = undefined
    return true
  }

  received(length: number): void {
    addTo(this.#words, BYTES_IN, length)
  }

  /** Not before the connection is open: earlier bytes are reported then. */
  sent(length: number): void {
    if (this.#words !== NOTHING_COUNTED) addTo(this.#words, BYTES_OUT, length)
  }

  /** Bytes that found no receive posted and went through the receive buffer. */
  buffered(length: number): void {
    addTo(this.#words, BYTES_BUFFERED, length)
  }

  /** Bytes received directly from the peer's memory. */
  fetched(length: number): void {
    addTo(this.#words, BYTES_FETCHED, length)
  }

  /** Bytes sent that the peer fetched itself. */
  fetchedByPeer(length: number): void {
    addTo(this.#words, PEER_FETCHED, length)
  }

  taken(length: number): void {
    addTo(this.#words, BYTES_TAKEN, length)
  }

  takenByPeer(length: number): void {
    addTo(this.#words, PEER_TAKEN, length)
  }

  /** Bytes that the program has written and that are not sent yet. */
  waiting(length: number): void {
    if (this.#row !== undefined) this.#words[BYTES_WAITING] = length
  }

  /** This program has ended its direction. */
  endedHere(): void {
    this.#end(ENDED_HERE)
  }

  endedByPeer(): void {
    this.#end(ENDED_BY_PEER)
  }

  #end(direction: number): void {
    if (this.#row !== undefined) this.#words[STREAM_STATE] = (this.#words[STREAM_STATE] as number) | direction
  }
}
