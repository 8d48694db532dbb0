import { randomBytes } from 'node:crypto'
import { NicError } from '../errors.ts'
import type { VirtualInterface } from '../nic.ts'
import type { Libc, PollHandle } from '../posix/libc.ts'
import {
  acceptConnection,
  type Credentials,
  listenAbstract,
  peerCredentials,
  receiveMessage,
} from '../posix/unix-socket.ts'
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

type Answer = (fd: number, credentials: Credentials, request: Buffer) => VirtualInterface

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
  readonly #fd: number
  readonly #watch: PollHandle
  readonly #expected = new Map<string, Expectation>()
  #callers = 0

  constructor(libc: Libc) {
    this.#libc = libc
    this.#fd = listenAbstract(libc, socketName(this.name))
    this.#watch = libc.watch(this.#fd, () => this.#accept())
    this.#watch.unref()
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

  #accept(): void {
    for (;;) {
      const fd = acceptConnection(this.#libc, this.#fd)
      if (fd < 0) return
      if (this.#callers >= CALLERS_MAX) this.#libc.close(fd)
      else this.#listenTo(fd)
    }
  }

  #listenTo(fd: number): void {
    const libc = this.#libc
    this.#callers++
    const hangUp = (): void => {
      clearTimeout(timer)
      watch.close()
      libc.close(fd)
      this.#callers--
    }
    const timer = setTimeout(hangUp, REQUEST_TIMEOUT_MS)
    timer.unref()
    const watch = libc.watch(fd, () => {
      try {
        const message = receiveMessage(libc, fd, REQUEST_SIZE, 0)
        if (message === undefined) return
        this.#serve(fd, message.bytes)
      } catch {
        // A caller who breaks the rules is hung up on; the offer stands for the one who was meant.
      }
      hangUp()
    })
    watch.unref()
  }

  #serve(fd: number, request: Buffer): void {
    if (
      request.length !== REQUEST_SIZE ||
      request.readUInt32LE(MAGIC) !== REQUEST_MAGIC ||
      request.readUInt32LE(VERSION) !== HANDOFF_VERSION
    ) {
      return
    }
    const key = request.toString('hex', REQUEST_NONCE, REQUEST_NONCE + NONCE_SIZE)
    const expectation = this.#expected.get(key)
    if (expectation === undefined) return
    const credentials = peerCredentials(this.#libc, fd)
    try {
      expectation.resolve(expectation.answer(fd, credentials, request))
    } catch (error) {
      expectation.reject(error as Error)
    }
  }
}
