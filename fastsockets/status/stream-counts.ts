import {
  BYTES_BUFFERED,
  BYTES_FETCHED,
  BYTES_IN,
  BYTES_OUT,
  BYTES_WAITING,
  COUNTS_LENGTH,
  DATAGRAMS,
  DROPPED,
  ENDED_BY_PEER,
  ENDED_HERE,
  PEER_FETCHED,
  PEER_WINDOW,
  STREAM_STATE,
} from './status-layout.ts'
import type { StatusRow } from './status-page.ts'

export interface StreamCounters {
  /** Of the bytes received, those that found no receive posted, and went through the receive buffer. */
  readonly bytesBuffered: number
  /** Of the bytes received, and of those sent, those that were fetched straight from the writer's memory. */
  readonly zcopyBytesIn: number
  readonly zcopyBytesOut: number
}

/** Receives counts before the connection is open, and after it is closed; never read. */
const DISCARDED = new Float64Array(COUNTS_LENGTH)
const NOTHING = new Float64Array(COUNTS_LENGTH)

interface Totals extends StreamCounters {
  readonly bytesIn: number
  readonly bytesOut: number
}

/**
 * The counters of one stream: on the status page while the connection is open; afterwards a copy of their last
 * values.
 */
export class StreamCounts {
  /** By the constants of status-layout.ts: written by the stream on each message. */
  words: Float64Array = DISCARDED
  private row: StatusRow | undefined
  private atEnd: Totals | undefined

  get bytesIn(): number {
    return this.totals().bytesIn
  }

  get bytesOut(): number {
    return this.totals().bytesOut
  }

  snapshot(): StreamCounters {
    const { bytesBuffered, zcopyBytesIn, zcopyBytesOut } = this.totals()
    return { bytesBuffered, zcopyBytesIn, zcopyBytesOut }
  }

  /** The connection is open, and the peer's receive buffer has `window` bytes. */
  open(row: StatusRow, window: number): void {
    this.row = row
    this.words = row.counts
    this.grant(window)
  }

  get isOpen(): boolean {
    return this.row !== undefined
  }

  /** The peer's receive buffer has another size. */
  grant(window: number): void {
    this.words[PEER_WINDOW] = window
  }

  /** False if the connection was never open, or is closed. */
  close(): boolean {
    if (this.row === undefined) return false
    this.atEnd = this.totals()
    this.row.close()
    this.row = undefined
    this.words = DISCARDED
    return true
  }

  sent(length: number): void {
    this.add(BYTES_OUT, length)
  }

  /** Datagrams that were sent, or delivered; 0 if it is not open. */
  get datagrams(): number {
    return this.row === undefined ? 0 : (this.words[DATAGRAMS] as number)
  }

  /** Of those to send, and of those that arrived: dropped, because the receiver's socket was full. */
  get dropped(): number {
    return this.row === undefined ? 0 : (this.words[DROPPED] as number)
  }

  countDatagram(): void {
    this.add(DATAGRAMS, 1)
  }

  countDropped(count: number): void {
    this.add(DROPPED, count)
  }

  /** Bytes that found no receive posted and went through the receive buffer. */
  buffered(length: number): void {
    this.add(BYTES_BUFFERED, length)
  }

  /** Bytes received directly from the peer's memory. */
  fetched(length: number): void {
    this.add(BYTES_IN, length)
    this.add(BYTES_FETCHED, length)
  }

  /** Bytes sent that the peer fetched itself. */
  fetchedByPeer(length: number): void {
    this.add(BYTES_OUT, length)
    this.add(PEER_FETCHED, length)
  }

  /** Bytes that the program has written and that are not sent yet. */
  waiting(length: number): void {
    this.words[BYTES_WAITING] = length
  }

  /** This program has ended its direction. */
  endedHere(): void {
    this.end(ENDED_HERE)
  }

  endedByPeer(): void {
    this.end(ENDED_BY_PEER)
  }

  private end(direction: number): void {
    this.words[STREAM_STATE] = (this.words[STREAM_STATE] as number) | direction
  }

  private add(word: number, count: number): void {
    this.words[word] = (this.words[word] as number) + count
  }

  private totals(): Totals {
    if (this.atEnd !== undefined) return this.atEnd
    const words = this.row === undefined ? NOTHING : this.words
    return {
      bytesIn: words[BYTES_IN] as number,
      bytesOut: words[BYTES_OUT] as number,
      bytesBuffered: words[BYTES_BUFFERED] as number,
      zcopyBytesIn: words[BYTES_FETCHED] as number,
      zcopyBytesOut: words[PEER_FETCHED] as number,
    }
  }
}
