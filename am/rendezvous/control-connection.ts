import type net from 'node:net'
import { type Clock, realClock } from '../../nic/clock.ts'
import { limitSilenceOf, type NetworkPath, openLog, receiveNow } from '../../nic/index.ts'
import { type ControlMessage, decodeControl, LINE_MAX } from './control-messages.ts'

const log = openLog('fastsockets:am:control')

/** Our JSON is ASCII: no read cuts a character in half. */
const received = Buffer.alloc(LINE_MAX)

/** Most reads of one `checkNow`, of `LINE_MAX` bytes each. */
const READS_MAX = 4
/** Most messages that wait for a listener; more end the connection. */
const EARLY_MAX = 16
/** Most messages handled in one iteration; the rest waits for the next. */
const TURN_MAX = 256
/** Unsent bytes that end the connection: the peer sends requests and does not read the answers. */
const UNSENT_MAX = 1024 * 1024
/** Longest time for the peer to end its side after we have ended ours. */
const END_TIMEOUT_MS = 2000

export interface ControlListener {
  handleControl(message: ControlMessage): void
  /** The connection is over, ended by either side. Called once. */
  handleControlEnd(): void
}

/** What a control connection needs of its socket: `net.Socket`, or a simulated one. */
export interface ControlSocket {
  readonly writable: boolean
  /** Bytes that are not sent yet. */
  readonly writableLength: number
  readonly readableLength: number
  readonly localAddress?: string | undefined
  readonly remoteAddress?: string | undefined
  setEncoding(encoding: 'utf8'): unknown
  on(event: 'data', listener: (text: string) => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'close', listener: () => void): unknown
  write(text: string): unknown
  /** Emits 'data', as `net.Socket` does, if bytes are buffered. */
  read(): unknown
  pause(): unknown
  resume(): unknown
  end(): unknown
  destroy(): unknown
  ref(): unknown
  unref(): unknown
}

/** Lines of JSON over a socket (control-messages.ts). An invalid line ends the connection. */
export class ControlConnection {
  /** Resolves when the connection is over, ended by either side. */
  readonly over: Promise<void>
  readonly #socket: ControlSocket
  readonly #clock: Clock
  #listener: ControlListener | undefined
  #received = ''
  #isOver = false
  #isEnding = false
  /** More messages wait than one iteration handles. */
  #isPaused = false
  readonly #early: ControlMessage[] = []

  constructor(socket: ControlSocket, clock: Clock = realClock) {
    this.#socket = socket
    this.#clock = clock
    socket.setEncoding('utf8')
    socket.on('data', (text: string) => this.#handleText(text))
    socket.on('error', error => log('%s', error.message))
    this.over = new Promise(resolve => {
      socket.on('close', () => {
        resolve()
        // Handle all messages first: the last one may be the reason for the end.
        this.#handleSome(Number.POSITIVE_INFINITY)
        this.#end()
      })
    })
  }

  /** Sets the listener. Messages that arrived before are delivered at once. */
  listen(listener: ControlListener): void {
    this.#listener = listener
    for (const message of this.#early.splice(0)) listener.handleControl(message)
    if (this.#isOver) listener.handleControlEnd()
  }

  /** Removes the listener; messages that arrive from now on wait for the next one. */
  hush(): void {
    this.#listener = undefined
  }

  send(message: ControlMessage): void {
    if (!this.#socket.writable) return
    this.#socket.write(`${JSON.stringify(message)}\n`)
    if (this.#socket.writableLength > UNSENT_MAX) this.#socket.destroy()
  }

  /** The addresses of both ends; undefined within a host. */
  get path(): NetworkPath | undefined {
    const { localAddress: own, remoteAddress: peer } = this.#socket
    return own === undefined || peer === undefined ? undefined : { own, peer }
  }

  /** Over TCP: a host that is silent for so long ends the connection. */
  limitSilence(peerTimeoutMs: number): void {
    if (this.path !== undefined) limitSilenceOf(this.#socket as net.Socket, peerTimeoutMs)
  }

  /** This side has ended the connection; the peer may not have noticed yet. */
  get isEnding(): boolean {
    return this.#isEnding
  }

  /** Ends this side. Sent messages are still delivered if the peer ends its side within `END_TIMEOUT_MS`. */
  end(): void {
    if (this.#isEnding) return
    this.#isEnding = true
    this.#socket.end()
    const timer = this.#clock.setTimeout(() => this.destroy(), END_TIMEOUT_MS)
    timer.unref()
    void this.over.then(() => this.#clock.clearTimeout(timer))
  }

  /** Notifies the listener at once: the event loop may run much later. */
  destroy(): void {
    this.#socket.destroy()
    this.#end()
  }

  ref(): void {
    this.#socket.ref()
  }

  unref(): void {
    this.#socket.unref()
  }

  /** Reads messages without the event loop, for programs that do not let it run; at most `READS_MAX` reads. */
  checkNow(): void {
    for (let reads = 0; reads < READS_MAX && !this.#isOver; reads++) {
      if (this.#isPaused && !this.#catchUp()) return
      // Looked up each time: after the socket is destroyed its descriptor number may be reused.
      const fd = (this.#socket as unknown as { _handle?: { fd: number } | null })._handle?.fd
      const length = fd === undefined ? -1 : receiveNow(fd, received)
      if (length < 0) return
      if (length > 0) this.#handleText(received.toString('latin1', 0, length))
      else this.destroy()
    }
  }

  #handleText(text: string): void {
    this.#received += text
    this.#handleSome()
  }

  #handleSome(limit = TURN_MAX): void {
    for (let count = 0; !this.#isOver; count++) {
      const at = this.#received.indexOf('\n')
      if (at < 0) break
      if (count === limit) return this.#goOnLater()
      const line = this.#received.slice(0, at)
      this.#received = this.#received.slice(at + 1)
      const message = line.length <= LINE_MAX ? decodeControl(line) : undefined
      if (message === undefined) return this.#refuse(line)
      if (this.#listener !== undefined) this.#listener.handleControl(message)
      else if (this.#early.push(message) > EARLY_MAX) return this.#refuse(line)
    }
    if (this.#received.length > LINE_MAX) this.#refuse(this.#received)
  }

  /** Handles the rest in the next iteration, and reads nothing more from the peer before that. */
  #goOnLater(): void {
    if (this.#isPaused) return
    this.#isPaused = true
    this.#socket.pause()
    this.#clock.setImmediate(() => {
      this.#isPaused = false
      this.#socket.resume()
      this.#handleSome()
    })
  }

  /** Handles messages that were already read from the kernel; true if none is left. */
  #catchUp(): boolean {
    this.#handleSome()
    // `read()` emits 'data', as always.
    if (!this.#received.includes('\n') && this.#socket.readableLength > 0) this.#socket.read()
    return !this.#received.includes('\n') && this.#socket.readableLength === 0
  }

  #refuse(line: string): void {
    log('this is no control message: %s', line.slice(0, 200))
    this.destroy()
  }

  #end(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#listener?.handleControlEnd()
  }
}
