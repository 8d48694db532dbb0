/**
 * Questions to the daemon over a unix socket, many on one connection: they are sent without waiting for the answers, which
 * come in the same order. What is asked in one turn of the event loop goes in one write, and answers that come together are
 * read together; so a question costs a fraction of what `node:http` takes for it.
 */
import type { Socket } from 'node:net'
import { clearInterval, clearTimeout, nextTick, setInterval, setTimeout } from '../../nic/real-time.ts'
import type { Reply } from './caller.ts'
import { type NameError, unavailable } from './errors.ts'
import { ReplyReader } from './reply-reader.ts'

/** Questions on their way on one connection; more wait, and their time does not begin before they are sent. */
const UNDERWAY_MAX = 32
/** Characters of questions on their way, from which on no further one is sent. */
const UNDERWAY_SIZE_MAX = 128 * 1024
/** Questions that wait; further ones are rejected. */
const WAITING_MAX = 10_000
/** Longer than any program lives. */
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

/** Asks in order, on one connection at a time; it is opened when it is needed. */
export class Pipeline {
  readonly #open: () => Socket
  readonly #waiting: Asked[] = []
  /** Of them, those that keep the program alive, and what does it. */
  #waitingForeground = 0
  #alive: NodeJS.Timeout | undefined
  #connection: Connection | undefined
  /** With those that are asked nothing more, and still answer. */
  readonly #connections = new Set<Connection>()

  /** `open` returns a socket that is connecting. */
  constructor(open: () => Socket) {
    this.#open = open
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

  /** Nothing more will be asked: connections end when they have answered. */
  retire(): void {
    for (const connection of this.#connections) connection.retire()
  }

  /** What is under way fails, and what waits. */
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
    const connection = new Connection(this.#open(), {
      handleRoom: () => this.#sendWaiting(),
      handleRetired: () => {
        if (this.#connection === connection) this.#connection = undefined
      },
      handleClosed: () => this.#connections.delete(connection),
    })
    this.#connections.add(connection)
    return connection
  }

  /** What waits has no time yet, and no socket. */
  #updateLife(): void {
    if (this.#waitingForeground > 0) this.#alive ??= setInterval(() => {}, EVER_MS)
    else {
      clearInterval(this.#alive)
      this.#alive = undefined
    }
  }
}

interface ConnectionOwner {
  handleRoom(): void
  /** Nothing more may be sent; what is under way may still be answered. */
  handleRetired(): void
  handleClosed(): void
}

/** A question on its way. */
interface Sent {
  readonly asked: Asked
  timer: NodeJS.Timeout | undefined
  isSettled: boolean
}

class Connection {
  readonly #socket: Socket
  readonly #owner: ConnectionOwner
  readonly #sent: Sent[] = []
  /** Of `#sent`: those that nobody has given up, and those that keep the program alive. */
  #unsettled = 0
  #foreground = 0
  #size = 0
  #unwritten = ''
  #hasAnswered = false
  #isRetired = false

  constructor(socket: Socket, owner: ConnectionOwner) {
    this.#socket = socket
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
    sent.timer = setTimeout(handleTimeout, asked.timeoutMs, this, sent)
    if (asked.isBackground) sent.timer.unref()
    else if (this.#foreground++ === 0) this.#socket.ref()
    this.#unsettled += 1
    this.#sent.push(sent)
    this.#size += asked.text.length
    // After all promises that are kept now: whoever goes on with a reply asks the next question then.
    if (this.#unwritten === '') nextTick(flush, this)
    this.#unwritten += asked.text
  }

  destroy(): void {
    this.#fail(closedError())
  }

  /** Writes what has been sent since the last turn. */
  flush(): void {
    if (!this.#socket.destroyed) this.#socket.write(this.#unwritten)
    this.#unwritten = ''
  }

  giveUp(sent: Sent): void {
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
    clearTimeout(sent.timer)
    sent.isSettled = true
    this.#unsettled -= 1
    if (!sent.asked.isBackground && --this.#foreground === 0) this.#socket.unref()
  }

  /** Somebody who does not answer in time is asked nothing more here: a new connection may do better. */
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

function handleTimeout(connection: Connection, sent: Sent): void {
  connection.giveUp(sent)
}

function flush(connection: Connection): void {
  connection.flush()
}
