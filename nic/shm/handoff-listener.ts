import net from 'node:net'
import { NicError } from '../errors.ts'
import type { VirtualInterface } from '../nic.ts'
import { markOwn } from '../own-sockets.ts'
import { CallersByUser } from '../posix/callers-by-user.ts'
import { Doorbell } from '../posix/doorbell.ts'
import type { Libc } from '../posix/libc.ts'
import { type Credentials, duplicate, peerCredentials, refuseDescriptors } from '../posix/unix-socket.ts'
import { randomBytes } from '../random.ts'
import { clearTimeout, setTimeout } from '../real-time.ts'
import { undisturbed } from '../threads/undisturbed.ts'
import {
  HANDOFF_VERSION,
  MAGIC,
  NONCE_SIZE,
  REQUEST_MAGIC,
  REQUEST_NONCE,
  REQUEST_SIZE,
  socketName,
  VERSION,
} from './handoff-layout.ts'

/** A stranger may connect and say nothing: not for longer than this, and not more than so many at once. */
const REQUEST_TIMEOUT_MS = 1000
const CALLERS_MAX = 256
/** The same of another user. */
const OTHER_CALLERS_MAX = 64
/** Callers who were not accepted yet. */
const BACKLOG = 128

const NO_REQUEST = Buffer.alloc(0)

/** Makes this side's interface, to which `bell` belongs from then on; or throws. */
type Answer = (bell: Doorbell, credentials: Credentials, request: Buffer) => VirtualInterface

interface Expectation {
  readonly answer: Answer
  readonly resolve: (end: VirtualInterface) => void
  readonly reject: (error: Error) => void
}

/** The abstract unix socket on which offers are taken up. One per thread, opened by the first offer, never closed. */
export class HandoffListener {
  /** 16 random bytes; `socketName` turns them into the socket's name. */
  readonly name = randomBytes(16)
  readonly #libc: Libc
  readonly #expected = new Map<string, Expectation>()
  readonly #callers = new CallersByUser({
    own: CALLERS_MAX,
    other: OTHER_CALLERS_MAX,
    others: CALLERS_MAX,
  })

  constructor(libc: Libc) {
    this.#libc = libc
    const server = new net.Server({ pauseOnConnect: true })
    markOwn(server)
    server.on('connection', caller => this.#accept(caller))
    // Listening happens at once; only a failure is reported, later, as an event.
    server.on('error', () => {})
    // Exclusive: in a cluster worker the primary would listen in its place.
    server.listen({ path: `\0${socketName(this.name)}`, backlog: BACKLOG, exclusive: true })
    if (!server.listening) throw new NicError('ERR_NIC_UNAVAILABLE', 'no abstract unix socket to listen on')
    server.unref()
    refuseDescriptors(server)
  }

  /** Waits for one caller that shows `nonce`; `answer` then makes this side's interface, or throws. */
  expect(
    nonce: Buffer,
    timeoutMs: number,
    answer: Answer,
  ): { accepted: Promise<VirtualInterface>; cancel: () => void } {
    const key = nonce.toString('hex')
    let cancel = (): void => {}
    const accepted = new Promise<VirtualInterface>((resolve, reject) => {
      const forget = (): void => {
        clearTimeout(timer)
        this.#expected.delete(key)
      }
      const fail = (message: string): void => {
        forget()
        reject(new NicError('ERR_NIC_CONNECT_FAILED', message))
      }
      const timer = setTimeout(() => fail('nobody took up the offer in time'), timeoutMs)
      timer.unref()
      cancel = () => fail('the offer was cancelled')
      this.#expected.set(key, {
        answer,
        resolve: end => {
          forget()
          resolve(end)
        },
        reject: error => {
          forget()
          reject(error)
        },
      })
    })
    // Whoever made the offer looks at the promise; a cancelled one must not count as unhandled before that.
    accepted.catch(() => {})
    return { accepted, cancel }
  }

  /** Node's socket would take new memory for each read, so its connection goes on in a doorbell. */
  #accept(caller: net.Socket): void {
    const { fd } = (caller as unknown as { _handle: { fd: number } })._handle
    try {
      const { uid } = peerCredentials(this.#libc, fd)
      const bell = undisturbed(() => new Doorbell(this.#libc, duplicate(this.#libc, fd)))
      if (this.#callers.enter(uid)) this.#listenTo(bell, uid)
      else bell.close()
    } catch {
      // Out of descriptors: nobody can be served.
    }
    caller.destroy()
  }

  #listenTo(bell: Doorbell, uid: number): void {
    const finish = (request: Buffer): void => {
      clearTimeout(timer)
      this.#callers.leave(uid)
      if (!this.#serve(bell, request)) bell.close()
    }
    const timer = setTimeout(finish, REQUEST_TIMEOUT_MS, NO_REQUEST)
    timer.unref()
    bell.watch((bytes, length) => finish(Buffer.from(bytes.subarray(0, length))))
  }

  /** False hangs up: a caller who breaks the rules must not end the offer for the one who was meant. */
  #serve(bell: Doorbell, request: Buffer): boolean {
    if (
      request.length !== REQUEST_SIZE ||
      request.readUInt32LE(MAGIC) !== REQUEST_MAGIC ||
      request.readUInt32LE(VERSION) !== HANDOFF_VERSION
    ) {
      return false
    }
    const key = request.toString('hex', REQUEST_NONCE, REQUEST_NONCE + NONCE_SIZE)
    const expectation = this.#expected.get(key)
    if (expectation === undefined) return false
    try {
      expectation.resolve(expectation.answer(bell, peerCredentials(this.#libc, bell.fd), request))
      return true
    } catch (error) {
      expectation.reject(error as Error)
      return false
    }
  }
}
