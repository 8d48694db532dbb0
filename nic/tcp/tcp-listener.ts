/** Places where callers connect. Until a caller is authenticated it costs little, and not for long. */
import net from 'node:net'
import { NicError } from '../errors.ts'
import { openLog } from '../log.ts'
import { markOwn } from '../own-sockets.ts'
import { CallersByUser } from '../posix/callers-by-user.ts'
import { AF_INET, SOCK_CLOEXEC, SOCK_NONBLOCK, SOCK_STREAM } from '../posix/constants.ts'
import { type Libc, systemError } from '../posix/libc.ts'
import { clearTimeout, setTimeout } from '../real-time.ts'
import { undisturbed } from '../threads/undisturbed.ts'
import { type Answering, answerCall } from './handshake.ts'
import { AT_CHALLENGE_STATUS, CHALLENGE_SIZE, MAGIC, REFUSED_BUSY } from './handshake-layout.ts'
import { callerOf } from './peer-user.ts'

const log = openLog('fastsockets:nic:tcp')

/** Longest handshake of a caller. */
export const HANDSHAKE_MS_MAX = 3000
/** Most callers that are not authenticated yet: of one address or other user of this host, and of all of those together; as many of our own user. */
const CALLERS_OF_ONE_MAX = 256
const CALLERS_MAX = 1024
/** Bytes that Node reads ahead of a caller. */
const READ_AHEAD = 1024
/** struct sockaddr_in: family, port and address, both in network order. */
const SOCKADDR_SIZE = 16
const LOOPBACK = [127, 0, 0, 1]

export class TcpListener {
  readonly #server: net.Server
  readonly #answering: Answering
  readonly #handleControl: (socket: net.Socket) => void
  readonly #callers = new CallersByUser({ own: CALLERS_MAX, other: CALLERS_OF_ONE_MAX, others: CALLERS_MAX })

  /** `handleControl` takes over authenticated connections that take up no offer. */
  constructor(answering: Answering, handleControl: (socket: net.Socket) => void) {
    this.#answering = answering
    this.#handleControl = handleControl
    this.#server = new net.Server({ noDelay: true, highWaterMark: READ_AHEAD })
    markOwn(this.#server)
    this.#server.on('connection', socket => this.#meet(socket))
    // For example, out of descriptors for a caller: the program must not end for that.
    this.#server.on('error', error => log('%s', error.message))
    this.#server.unref()
  }

  /** Listens at any free port of 127.0.0.1 at once, without a turn of the event loop. */
  listenHere(libc: Libc): void {
    undisturbed(() => {
      const fd = libc.socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)
      if (fd < 0) throw systemError(libc, 'socket')
      const address = Buffer.alloc(SOCKADDR_SIZE)
      address.writeUInt16LE(AF_INET, 0)
      address.set(LOOPBACK, 4)
      if (libc.bind(fd, address, address.length) < 0) {
        const error = systemError(libc, 'bind')
        libc.close(fd)
        throw error
      }
      // A handle belongs to this process also in a cluster worker, where an address would be the primary's.
      this.#server.listen(new net.Socket({ fd, readable: false, writable: false }))
    })
    if (!this.#server.listening) throw new NicError('ERR_NIC_UNAVAILABLE', 'no loopback port to listen on')
  }

  /** Rejects with the error of listen(2). */
  async listenAt(host: string, port: number): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen({ host, port, exclusive: true }, () => {
        this.#server.off('error', reject)
        resolve()
      })
    })
  }

  get port(): number {
    return (this.#server.address() as net.AddressInfo).port
  }

  close(): void {
    this.#server.close()
  }

  #meet(socket: net.Socket): void {
    socket.on('error', error => log('%s', error.message))
    socket.unref()
    const from = callerOf(socket)
    if (!this.#callers.enter(from)) {
      const busy = Buffer.alloc(CHALLENGE_SIZE)
      MAGIC.copy(busy)
      busy[AT_CHALLENGE_STATUS] = REFUSED_BUSY
      socket.end(busy)
      return socket.destroySoon()
    }
    const timer = setTimeout(() => socket.destroy(), HANDSHAKE_MS_MAX)
    timer.unref()
    answerCall(socket, this.#answering)
      .then(call => {
        if (call === undefined) this.#handleControl(socket)
        else call.accept(socket)
      })
      .catch((error: Error) => {
        log('the caller %s was not answered: %s', from, error.message)
        // A refusal goes out first.
        socket.destroySoon()
      })
      .finally(() => {
        clearTimeout(timer)
        this.#callers.leave(from)
      })
  }
}
