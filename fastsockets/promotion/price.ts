/**
 * The rule by which a connection that began on TCP becomes fast: stay on TCP until as much has been paid to it as the move
 * costs (the ski-rental rule). A program that ends early has paid nothing for the fast way; one that goes on pays at most twice
 * the price of the better choice.
 *
 * All prices are microseconds of one program's time: round figures from docs/performance.md and from the start of a cold program,
 * Node 20. They say what TCP costs more than the fast way, and what the steps to the fast way cost.
 */

/** A connection over TCP, beyond one over a channel that exists. */
export const CONNECT_US = 150
/** A write with its answer, beyond one over a stream. */
export const WRITE_US = 25
/** A read, beyond one of a stream, if the program does not answer. */
export const READ_US = 10
/** A datagram that the kernel sends or delivers, beyond one over a channel. */
export const DATAGRAM_US = 10
/** Bytes in either direction, beyond those of a stream. */
export const BYTES_PER_US = 4096
/**
 * To load what is needed (50 ms), and to run it while V8 has not compiled it: with `start: fast` the first 300 connections of two
 * programs took 135 ms longer than plain ones.
 */
export const START_PRICE_US = 100_000
/**
 * Of what TCP costs in a millisecond so much is not counted towards that price: a process that exchanges fewer messages (1,600 writes a
 * second) sleeps in between, and its wake-ups cost as much over shared memory.
 */
export const IDLE_US_PER_MS = 40
/** To find a server's channel, or that it has none. */
export const FIND_PRICE_US = 2000
/** To move one connection. */
export const MOVE_PRICE_US = 500
/** A server that had no channel is looked for again once this price was paid to TCP since; each failed search doubles it, up to the second figure. */
export const AGAIN_PRICE_US = 20_000
export const AGAIN_PRICE_MAX_US = 1_000_000

export function writePriceUs(length: number): number {
  return WRITE_US + length / BYTES_PER_US
}
