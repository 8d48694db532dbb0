/**
 * Both halves of contestants that carry messages without flow control of their own. The receiver regularly acknowledges
 * the bytes received; the sender stays less than a window ahead.
 */
import type { LatencyHistogram } from '../latency-histogram.ts'
import type { Client, Received } from './contestant.ts'

/** Carries messages in order; each is one of these. */
export type Letter =
  | { readonly kind: 'echo'; readonly bytes: Uint8Array }
  | { readonly kind: 'data'; readonly bytes: Uint8Array }
  /** How many bytes of data the receiver has seen. */
  | { readonly kind: 'seen'; readonly bytes: number }
  | { readonly kind: 'count' }
  | { readonly kind: 'counted'; readonly received: Received; readonly cpuUs: number }

export interface Mailbox {
  send(letter: Letter): void
  listen(listener: (letter: Letter) => void): void
  close(): Promise<void>
}

const WINDOW_BYTES = 8 * 1024 * 1024
/** A message of a few bytes takes memory too. */
const MESSAGE_COST = 1024
const SEEN_EVERY = WINDOW_BYTES / 4

/** The bytes of the window that a message uses. */
function costOf(bytes: Uint8Array): number {
  return bytes.length + MESSAGE_COST
}

/** `cpuUs` returns the CPU time of this half, if it is a process of its own. */
export function answerLetters(mailbox: Mailbox, cpuUs: () => number): void {
  let bytes = 0
  let cost = 0
  let told = 0
  let startMs = 0
  mailbox.listen(letter => {
    if (letter.kind === 'echo') mailbox.send(letter)
    else if (letter.kind === 'data') {
      if (bytes === 0) startMs = performance.now()
      bytes += letter.bytes.length
      cost += costOf(letter.bytes)
      if (cost - told >= SEEN_EVERY) {
        told = cost
        mailbox.send({ kind: 'seen', bytes: cost })
      }
    } else if (letter.kind === 'count') {
      const received = { bytes, ms: performance.now() - startMs }
      mailbox.send({ kind: 'counted', received, cpuUs: cpuUs() })
      bytes = cost = told = 0
    }
  })
}

export class LetterClient implements Client {
  readonly #mailbox: Mailbox
  #handle: (letter: Letter) => unknown = () => {}

  constructor(mailbox: Mailbox) {
    this.#mailbox = mailbox
    mailbox.listen(letter => this.#handle(letter))
  }

  async pingPong(size: number, ms: number, latencies: LatencyHistogram): Promise<void> {
    // Not a Buffer, whose memory may be part of a larger piece that would be cloned with it.
    const letter: Letter = { kind: 'echo', bytes: new Uint8Array(size).fill(1) }
    const endMs = performance.now() + ms
    let startMs = performance.now()
    await new Promise<void>(resolve => {
      this.#handle = () => {
        const nowMs = performance.now()
        latencies.recordMs(nowMs - startMs)
        if (nowMs >= endMs) return resolve()
        startMs = nowMs
        this.#mailbox.send(letter)
      }
      this.#mailbox.send(letter)
    })
  }

  async stream(size: number, ms: number): Promise<Received> {
    const letter: Letter = { kind: 'data', bytes: new Uint8Array(size).fill(1) }
    const cost = costOf(letter.bytes)
    const endMs = performance.now() + ms
    let sent = 0
    let seen = 0
    return await new Promise(resolve => {
      let isOver = false
      const fill = (): void => {
        if (isOver) return
        do {
          this.#mailbox.send(letter)
          sent += cost
          isOver = performance.now() >= endMs
        } while (!isOver && sent - seen < WINDOW_BYTES)
        if (isOver) this.#mailbox.send({ kind: 'count' })
      }
      this.#handle = answer => {
        if (answer.kind === 'counted') return resolve(answer.received)
        if (answer.kind !== 'seen') return
        seen = answer.bytes
        fill()
      }
      fill()
    })
  }

  async partnerCpuUs(): Promise<number> {
    return await new Promise(resolve => {
      this.#handle = letter => letter.kind === 'counted' && resolve(letter.cpuUs)
      this.#mailbox.send({ kind: 'count' })
    })
  }

  async close(): Promise<void> {
    await this.#mailbox.close()
  }
}
