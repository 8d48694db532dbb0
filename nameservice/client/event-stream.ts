/** A stream of events from the daemon that reconnects by itself and continues where it was. */
import type { ClientRequest, IncomingMessage } from 'node:http'
import { createParser, type EventSourceMessage } from 'eventsource-parser'
import type { Clock, Timer } from '../../nic/clock.ts'
import type { Problem } from '../problem.ts'
import type { Change } from '../record.ts'
import { type Cursor, formatCursor } from '../store/change-log.ts'
import { parseJson, readChange, readCursor, readProblem } from './answers.ts'
import { Backoff } from './backoff.ts'
import { NameError } from './errors.ts'
import type { Target } from './target.ts'

/** The daemon sends an event or a bookmark every 15 s. */
const SILENCE_MS_MAX = 40_000
const CONNECT_MS_MAX = 5000
/** One event is one entry of at most 64 KiB. */
const EVENT_SIZE_MAX = 1024 * 1024
const GONE = 410

export interface StreamFilter {
  readonly prefixes?: readonly string[]
  readonly names?: readonly string[]
}

export interface StreamListener {
  /** The stream is up: every change after `from` will arrive. */
  handleUp(from: Cursor): void
  handleChange(change: Change): void
  /** The stream has ended and will reconnect. */
  handleDown(): void
  /** Missed changes are no longer available. Later ones begin at the next `handleUp`. */
  handleLost(): void
  /** The daemon refuses this stream; there is no further try. */
  handleRefused(error: NameError): void
}

export interface StreamOptions {
  readonly target: Target
  readonly filter: StreamFilter
  /** Undefined: from now on. */
  readonly after: Cursor | undefined
  readonly listener: StreamListener
  /** Does not keep the program alive. */
  readonly isBackground: boolean
}

export class EventStream {
  readonly filter: StreamFilter
  readonly #target: Target
  readonly #listener: StreamListener
  readonly #isBackground: boolean
  readonly #clock: Clock
  readonly #backoff: Backoff
  #cursor: Cursor | undefined
  #call: ClientRequest | undefined
  #timer: Timer | undefined
  #isUp = false
  #isClosed = false

  constructor({ target, filter, after, listener, isBackground }: StreamOptions) {
    this.filter = filter
    this.#target = target
    this.#clock = target.time.clock
    this.#backoff = new Backoff(target.time.random)
    this.#cursor = after
    this.#listener = listener
    this.#isBackground = isBackground
    this.#connect()
  }

  /** The cursor of the last delivered event. */
  get cursor(): Cursor | undefined {
    return this.#cursor
  }

  get isUp(): boolean {
    return this.#isUp
  }

  close(): void {
    this.#isClosed = true
    this.#isUp = false
    this.#clock.clearTimeout(this.#timer)
    this.#call?.destroy()
  }

  #connect(): void {
    const body = JSON.stringify({
      ...this.filter,
      ...(this.#cursor === undefined ? {} : { after: formatCursor(this.#cursor) }),
    })
    const headers = {
      accept: 'text/event-stream',
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
    }
    const call = this.#target.request('POST', '/v1/watch', headers, true, response => {
      this.#read(response)
        .catch(() => {})
        .finally(() => this.#handleEnd(call))
    })
    this.#call = call
    if (this.#isBackground) call.once('socket', socket => socket.unref())
    call.once('error', () => this.#handleEnd(call))
    this.#expectWithin(CONNECT_MS_MAX)
    call.end(body)
  }

  async #read(response: IncomingMessage): Promise<void> {
    response.setEncoding('utf8')
    if (response.statusCode !== 200) return await this.#handleStatus(response)
    const parser = createParser({
      onEvent: event => {
        if (!this.#isClosed) this.#handleEvent(event)
      },
      maxBufferSize: EVENT_SIZE_MAX,
    })
    for await (const text of response as AsyncIterable<string>) {
      if (this.#isClosed) return
      this.#expectWithin(SILENCE_MS_MAX)
      parser.feed(text)
    }
  }

  async #handleStatus(response: IncomingMessage): Promise<void> {
    let text = ''
    for await (const chunk of response as AsyncIterable<string>) {
      text += chunk
      if (text.length > EVENT_SIZE_MAX) return
    }
    if (this.#isClosed) return
    const problem = readProblem(parseJson(text))
    if (problem.status === GONE) this.#lose()
    else if (isFinal(problem)) {
      this.close()
      this.#listener.handleRefused(new NameError('ERR_NAMES_REFUSED', problem.detail, { problem }))
    }
  }

  #handleEvent({ event, id, data }: EventSourceMessage): void {
    if (event === 'change') {
      const change = readChange(parseJson(data))
      this.#cursor = readCursor(id)
      this.#listener.handleChange(change)
    } else if (event === 'hello') {
      this.#cursor = readCursor(id)
      this.#isUp = true
      this.#backoff.reset()
      this.#listener.handleUp(this.#cursor)
    } else if (event === 'bookmark') this.#cursor = readCursor(id)
    else if (event === 'behind') this.#lose()
  }

  #lose(): void {
    this.#cursor = undefined
    this.#backoff.reset()
    this.#listener.handleLost()
  }

  #expectWithin(timeoutMs: number): void {
    this.#clock.clearTimeout(this.#timer)
    const call = this.#call
    this.#wait(() => call?.destroy(), timeoutMs)
  }

  #wait(handle: () => void, delayMs: number): void {
    this.#timer = this.#clock.setTimeout(handle, delayMs)
    if (this.#isBackground) this.#timer.unref()
  }

  #handleEnd(call: ClientRequest): void {
    // An answer that was cut short reports its end twice.
    if (this.#isClosed || this.#call !== call) return
    this.#call = undefined
    call.destroy()
    const wasUp = this.#isUp
    this.#isUp = false
    this.#clock.clearTimeout(this.#timer)
    this.#wait(() => this.#connect(), this.#backoff.nextMs())
    if (wasUp) this.#listener.handleDown()
  }
}

/** True if the same request would be refused again. */
function isFinal({ status }: Problem): boolean {
  return status < 500 && status !== 429 && status !== 408
}
