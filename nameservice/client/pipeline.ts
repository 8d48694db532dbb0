/**
 * Questions to the daemon over a unix socket, many on one connection: they are sent without waiting for the answers,
 * which come in the same order. Questions of one iteration of the event loop go in one write, and answers that arrive
 * together are read together, so a question costs a fraction of one by `node:http`.
 */
import type { Socket } from 'node:net'
import { type Clock, startInBackground, type Timer } from '../../nic/clock.ts'
import { nextTick } from '../../nic/real-time.ts'
import { type NameError, unavailable } from './errors.ts'
import { type Reply, ReplyReader } from './reply-reader.ts'

/** Questions under way on one connection; more wait, and their time begins when they are sent. */
const UNDERWAY_MAX = 32
/** Characters of questions under way, from which on no further one is sent. */
const UNDERWAY_SIZE_MAX = 128 * 1024
/** Waiting questions; further ones are rejected. */
const WAITING_MAX = 10_000
/** A time-out longer than any program lives. */
const EVER_MS = 0x7fffffff

export interface Asked {
  /** The whole request, as it is sent. */
  readonly text: string
  readonly timeoutMs: number
  /** The program may end before the answer comes. */
  readonly isBackground: boolean
  resolve(reply: Reply): void
  reject(error: NameError): void
}

/** Sends questions in order, on one connection at a time, opened on demand. */
export class Pipeline {
  readonly #open: () => Socket
  readonly #clock: Clock
  readonly #waiting: Asked[] = []
  /** Those of them that keep the program alive, and the handle that does it. */
  #waitingForeground = 0
  #alive: Timer | undefined
  #connection: Connection | undefined
  /** Including connections that get no further question and still answer. */
  readonly #connections = new Set<Connection>()

  /** `open` returns a socket that is connecting. */
  constructor(open: () => Socket, clock: Clock) {
    this.#open = open
    this.#clock = clock
  }

  ask(asked: Asked): void {
    if (this.#waiting.length === 0 && this.#connection?.hasRoom === true) this.#connection.send(asked)
    else if (this.#waiting.length >= WAITING_MAX)
      asked.reject(unavailable(new Error(`${WAITING_MAX} questions wait already`)))
    else {
      this.#waiting.push(asked)
      if (!asked.isBackground) this.#waitingForeground++
      this.#sendWaiting()
    }
  }

  /** No further question comes: connections end after their last answer. */
  retire(): void {
    for (const connection of this.#connections) connection.retire()
  }

  /** Questions under way and waiting ones fail. */
  close(): void {
    for (const asked of this.#waiting.splice(0)) asked.reject(closedError())
    this.#waitingForeground = 0
    this.#updateLife()
    for (const connection of this.#connections) connection.destroy()
  }

  #sendWaiting(): void {
    let sent = 0
    while (sent < this.#waiting.length) {
      this.#connection ??= this.#connect()
      if (!this.#connection.hasRoom) break
      const asked = this.#waiting[sent++] as Asked
      if (!asked.isBackground) this.#waitingForeground--
      this.#connection.send(asked)
    }
    this.#waiting.splice(0, sent)
    this.#updateLife()
  }

  #connect(): Connection {
    const connection = new Connection(this.#open(), this.#clock, {
      handleRoom: () => this.#sendWaiting(),
      handleRetired: () => {
        if (this.#connection === connection) this.#connection = undefined
      },
      handleClosed: () => this.#connections.delete(connection),
    })
    this.#connections.add(connection)
    return connection
  }

  /** A waiting question has no time-out and no socket yet. */
  #updateLife(): void {
    if (this.#waitingForeground > 0) this.#alive ??= this.#clock.setTimeout(() => {}, EVER_MS)
    else {
      this.#clock.clearTimeout(this.#alive)
      this.#alive = undefined
    }
  }
}

interface ConnectionOwner {
  handleRoom(): void
  /** No further question may be sent; those under way may still be answered. */
  handleRetired(): void
  handleClosed(): void
}

/** A question under way. */
interface Sent {
  readonly asked: Asked
  timer: Timer | undefined
  isSettled: boolean
}

class Connection {
  readonly #socket: Socket
  readonly #clock: Clock
  readonly #owner: ConnectionOwner
  readonly #sent: Sent[] = []
  /** Of `#sent`: those that still have a caller, and those that keep the program alive. */
  #unsettled = 0
  #foreground = 0
  #size = 0
  #unwritten = ''
  #hasAnswered = false
  #isRetired = false

  constructor(socket: Socket, clock: Clock, owner: ConnectionOwner) {
    this.#socket = socket
    this.#clock = clock
    this.#owner = owner
    const reader = new ReplyReader((reply, isLast) => this.#handleReply(reply, isLast))
    socket.unref()
    socket.on('data', (chunk: Buffer) => {
      try {
        reader.read(chunk)
      } catch (error) {
        this.#fail(error as NameError)
        return
      }
      if (this.hasRoom) this.#owner.handleRoom()
    })
    const lose = (cause: Error) => this.#fail(unavailable(cause, this.#hasAnswered))
    socket.once('error', lose)
    socket.once('end', () => lose(Object.assign(new Error('the connection ended'), { code: 'ECONNRESET' })))
    socket.once('close', () => {
      lose(new Error('the connection was closed'))
      owner.handleClosed()
    })
  }

  get hasRoom(): boolean {
    return !this.#isRetired && this.#sent.length < UNDERWAY_MAX && this.#size < UNDERWAY_SIZE_MAX
  }

  send(asked: Asked): void {
    const sent: Sent = { asked, timer: undefined, isSettled: false }
    const giveUp = (): void => this.#giveUp(sent)
    if (asked.isBackground) sent.timer = startInBackground(this.#clock, giveUp, asked.timeoutMs)
    else {
      sent.timer = this.#clock.setTimeout(giveUp, asked.timeoutMs)
      if (this.#foreground++ === 0) this.#socket.ref()
    }
    this.#unsettled += 1
    this.#sent.push(sent)
    this.#size += asked.text.length
    // After all promises that are settled now: their continuations may ask the next questions.
    if (this.#unwritten === '') nextTick(flush, this)
    this.#unwritten += asked.text
  }

  destroy(): void {
    this.#fail(closedError())
  }

  /** Writes the questions since the last iteration. */
  flush(): void {
    if (!this.#socket.destroyed) this.#socket.write(this.#unwritten)
    this.#unwritten = ''
  }

  #giveUp(sent: Sent): void {
    this.#settle(sent)
    sent.asked.reject(unavailable(new Error(`no answer in ${sent.asked.timeoutMs} ms`)))
    this.retire()
  }

  #handleReply(reply: Reply, isLast: boolean): void {
    this.#hasAnswered = true
    const sent = this.#sent.shift()
    this.#size -= sent?.asked.text.length ?? 0
    if (sent !== undefined && !sent.isSettled) {
      this.#settle(sent)
      sent.asked.resolve(reply)
    }
    if (isLast || this.#isRetired) this.retire()
  }

  #settle(sent: Sent): void {
    this.#clock.clearTimeout(sent.timer)
    sent.isSettled = true
    this.#unsettled -= 1
    if (!sent.asked.isBackground && --this.#foreground === 0) this.#socket.unref()
  }

  /** A connection that does not answer in time gets no further question: a new one may do better. */
  retire(): void {
    if (!this.#isRetired) {
      this.#isRetired = true
      this.#owner.handleRetired()
      this.#owner.handleRoom()
    }
    if (this.#unsettled === 0) this.#socket.destroy()
  }

  #fail(error: NameError): void {
    this.#isRetired = true
    this.#socket.destroy()
    this.#owner.handleRetired()
    for (const sent of this.#sent.splice(0)) {
      if (sent.isSettled) continue
      this.#settle(sent)
      sent.asked.reject(error)
    }
    this.#owner.handleRoom()
  }
}

function closedError(): NameError {
  return unavailable(new Error('the client was closed'))
}

function flush(connection: Connection): void {
  connection.flush()
}
