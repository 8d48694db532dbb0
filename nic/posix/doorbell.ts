import { EFD_CLOEXEC, EFD_NONBLOCK } from './constants.ts'
import { type Libc, type PollHandle, systemError } from './libc.ts'

const ONE = new Uint8Array([1, 0, 0, 0, 0, 0, 0, 0])
const COUNT = new Uint8Array(8)

/** An eventfd (eventfd(2)) that a peer writes to wake this event loop. Takes ownership of the descriptor. */
export class Doorbell {
  readonly fd: number
  readonly #libc: Libc
  readonly #watch: PollHandle
  #listener: (() => void) | undefined
  #closed = false

  static open(libc: Libc): number {
    const fd = libc.eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)
    if (fd < 0) throw systemError(libc, 'eventfd')
    return fd
  }

  constructor(libc: Libc, fd: number) {
    this.#libc = libc
    this.fd = fd
    this.#watch = libc.watch(fd, () => this.#answer())
    this.#watch.unref()
  }

  setListener(listener: () => void): void {
    this.#listener = listener
  }

  ref(): void {
    if (!this.#closed) this.#watch.ref()
  }

  unref(): void {
    if (!this.#closed) this.#watch.unref()
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#watch.close()
    this.#libc.close(this.fd)
  }

  #answer(): void {
    if (this.#closed) return
    this.#libc.read(this.fd, COUNT, 8)
    this.#listener?.()
  }
}

/** Rings the doorbell behind an eventfd. One that is full is ringing already. */
export function ringDoorbell(libc: Libc, fd: number): void {
  libc.write(fd, ONE, 8)
}
