import type net from 'node:net'
import { openLog, receiveNow } from '../../nic/index.ts'
import { clearTimeout, setImmediate, setTimeout } from '../../nic/real-time.ts'
import { type ControlMessage, decodeControl, LINE_MAX } from './control-messages.ts'

const log = openLog('fastsockets:am:control')

/** JSON of ours is ASCII: no character is cut in half. */
const received = Buffer.alloc(LINE_MAX)

/** Reads at a time, of `LINE_MAX` bytes each. */
const READS_MAX = 4
/** Messages that wait for a listener. */
const EARLY_MAX = 16
/** Messages that are handled in one turn: whoever says more waits for the next. */
const TURN_MAX = 256
/** Bytes that the peer has not taken: whoever asks and never listens is hung up on. */
const UNSENT_MAX = 1024 * 1024
/** How long the peer may take to end its side after we have ended ours. */
const END_TIMEOUT_MS = 2000

export interface ControlListener {
  handleControl(message: ControlMessage): void
  /** The connection is over, whoever ended it. Once. */
  handleControlEnd(): void
}

/** Lines of JSON over a socket (control-messages.ts). What is no message ends the connection. */
export class ControlConnection {
  /** Resolves when the connection is over, whoever ended it. */
  readonly over: Promise<void>
  readonly #socket: net.Socket
  #listener: ControlListener | undefined
  #heard = ''
  #isOver = false
  #isEnding = false
  /** There is more than a turn's worth of messages. */
  #isPaused = false
  readonly #early: ControlMessage[] = []

  constructor(socket: net.Socket) {
    this.#socket = socket
    socket.setEncoding('utf8')
    socket.on('data', (text: string) => this.#hear(text))
    socket.on('error', error => log('%s', error.message))
    this.over = new Promise(resolve => {
      socket.on('close', () => {
        resolve()
        // The last of what was said may be why it ends.
        this.#handleSome(Number.POSITIVE_INFINITY)
        this.#end()
      })
    })
  }

  /** What was heard before is told at once. */
  listen(listener: ControlListener): void {
    this.#listener = listener
    for (const message of this.#early.splice(0)) listener.handleControl(message)
    if (this.#isOver) listener.handleControlEnd()
  }

  /** Whoever listened does not any more; what is heard meanwhile waits for the next. */
  hush(): void {
    this.#listener = undefined
  }

  send(message: ControlMessage): void {
    if (!this.#socket.writable) return
    this.#socket.write(`${JSON.stringify(message)}\n`)
    if (this.#socket.writableLength > UNSENT_MAX) this.#socket.destroy()
  }

  /** It has been ended from here; the peer may not have heard of it. */
  get isEnding(): boolean {
    return this.#isEnding
  }

  /** Says no more; what was said is still delivered, to a peer that does not take its time. */
  end(): void {
    if (this.#isEnding) return
    this.#isEnding = true
    this.#socket.end()
    const timer = setTimeout(() => this.destroy(), END_TIMEOUT_MS)
    timer.unref()
    void this.over.then(() => clearTimeout(timer))
  }

  /** Whoever listens hears of the end at once: it may be long until the event loop runs. */
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

  /** Hears what has come without the event loop, for those who do not let it run; of a peer that says a lot, some of it. */
  hearNow(): void {
    for (let reads = 0; reads < READS_MAX && !this.#isOver; reads++) {
      if (this.#isPaused && !this.#catchUp()) return
      // Looked up each time: once the socket is destroyed its number may be somebody else's.
      const fd = (this.#socket as unknown as { _handle?: { fd: number } | null })._handle?.fd
      const length = fd === undefined ? -1 : receiveNow(fd, received)
      if (length < 0) return
      if (length > 0) this.#hear(received.toString('latin1', 0, length))
      else this.destroy()
    }
  }

  #hear(text: string): void {
    this.#heard += text
    this.#handleSome()
  }

  #handleSome(limit = TURN_MAX): void {
    for (let count = 0; !this.#isOver; count++) {
      const at = this.#heard.indexOf('\n')
      if (at < 0) break
      if (count === limit) return this.#goOnLater()
      const line = this.#heard.slice(0, at)
      this.#heard = this.#heard.slice(at + 1)
      const message = line.length <= LINE_MAX ? decodeControl(line) : undefined
      if (message === undefined) return this.#refuse(line)
      if (this.#listener !== undefined) this.#listener.handleControl(message)
      else if (this.#early.push(message) > EARLY_MAX) return this.#refuse(line)
    }
    if (this.#heard.length > LINE_MAX) this.#refuse(this.#heard)
  }

  /** The rest has the next turn, and nothing more is taken from the peer before that. */
  #goOnLater(): void {
    if (this.#isPaused) return
    this.#isPaused = true
    this.#socket.pause()
    setImmediate(() => {
      this.#isPaused = false
      this.#socket.resume()
      this.#handleSome()
    })
  }

  /** Some of what was taken from the kernel already; true if that is all. */
  #catchUp(): boolean {
    this.#handleSome()
    // Told by 'data', as always.
    if (!this.#heard.includes('\n') && this.#socket.readableLength > 0) this.#socket.read()
    return !this.#heard.includes('\n') && this.#socket.readableLength === 0
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
