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
import { hasName } from '../rendezvous/folder.ts'
import { handoffName } from '../rendezvous/names-layout.ts'
import { type Publication, publishSocket } from '../rendezvous/publishing.ts'
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

/** Limits for callers that connect and send no request: the longest wait, and their number. */
const REQUEST_TIMEOUT_MS = 1000
const CALLERS_MAX = 256
/** Callers of each other user. */
const OTHER_CALLERS_MAX = 64
/** Callers that wait in the kernel to be accepted (listen(2)). */
const BACKLOG = 128

const NO_REQUEST = Buffer.alloc(0)

/** Makes this side's interface, which owns `bell` from then on; or throws. */
type Answer = (bell: Doorbell, credentials: Credentials, request: Buffer) => VirtualInterface

interface Expectation {
  readonly answer: Answer
  readonly resolve: (end: VirtualInterface) => void
  readonly reject: (error: Error) => void
}

/**
 * The abstract unix socket where peers take up offers. One per thread, opened by the first offer, never closed. Peers of
 * other network namespaces find a second one in the rendezvous folder.
 */
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

  #inFolder: Publication | undefined

  constructor(libc: Libc) {
    this.#libc = libc
    const server = this.#newServer()
    // Node listens within `listen`, as `listening` shows below. It reports a failure in a later event, too.
    server.on('error', () => {})
    // Exclusive: otherwise the primary would listen in place of a cluster worker.
    server.listen({ path: `\0${socketName(this.name)}`, backlog: BACKLOG, exclusive: true })
    if (!server.listening) throw new NicError('ERR_NIC_UNAVAILABLE', 'no abstract unix socket to listen on')
    server.unref()
    refuseDescriptors(server)
  }

  #newServer(): net.Server {
    const server = new net.Server({ pauseOnConnect: true })
    markOwn(server)
    server.on('connection', caller => this.#accept(caller))
    return server
  }

  /** Lets peers of other namespaces take up offers. Throws if there is no rendezvous folder to listen in. */
  openInFolder(): void {
    const name = handoffName(this.name)
    // The folder may have been emptied under this program.
    if (this.#inFolder !== undefined && hasName(name)) return
    this.#inFolder?.close()
    this.#inFolder = undefined
    const publication = publishSocket(this.#newServer(), [name])
    if (typeof publication === 'string') throw new NicError('ERR_NIC_UNAVAILABLE', publication)
    this.#inFolder = publication
  }

  /** Waits for one caller that shows `nonce`. Then `answer` makes this side's interface, or throws. */
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
      const timer = setTimeout(() => fail('no caller took up the offer in time'), timeoutMs)
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
    // The caller handles the rejection, perhaps later: until then it must not count as unhandled.
    accepted.catch(() => {})
    return { accepted, cancel }
  }

  /** Moves the connection to a doorbell, because Node's socket would allocate memory for each read. */
  #accept(caller: net.Socket): void {
    const { fd } = (caller as unknown as { _handle: { fd: number } })._handle
    try {
      const { uid } = peerCredentials(this.#libc, fd)
      const bell = undisturbed(() => new Doorbell(this.#libc, duplicate(this.#libc, fd)))
      if (this.#callers.enter(uid)) this.#listenTo(bell, uid)
      else bell.close()
    } catch {
      // No descriptor is left: the caller is disconnected.
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

  /** False: the caller is disconnected. A malformed request or an unknown nonce leaves every offer open. */
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
