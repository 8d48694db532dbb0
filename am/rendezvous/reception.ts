/** Receives callers, and passes each to the endpoint that it wants. Their messages are a stranger's input. */
import type net from 'node:net'
import { type Clock, realClock } from '../../nic/clock.ts'
import { CallersByUser, isOwnUser, openLog, userOfPeer } from '../../nic/index.ts'
import { ControlConnection, type ControlSocket } from './control-connection.ts'
import { CONTROL_VERSION, NAME_MAX, type Open, type RefusalCode } from './control-messages.ts'

const log = openLog('fastsockets:am:rendezvous')

const OPEN_TIMEOUT_MS = 2000
/** Most callers of another user of this host that are not answered yet. */
const OTHER_CALLERS_MAX = 16
/** Stands for the user of a caller from another host, which is unknown. */
const UNKNOWN_UID = -1

/**
 * How a caller came: from this network namespace, or through the rendezvous folder from another one, as the kernel vouches; or, perhaps from another host, to the address of an RDMA
 * device, or to a TCP port where it has shown the shared key.
 */
export type Origin = 'host' | 'folder' | 'rdma' | 'tcp'

/** The kernel names the user of such a caller. */
export function isOfThisHost(origin: Origin): boolean {
  return origin === 'host' || origin === 'folder'
}

/** An endpoint of this thread, as callers use it. */
export interface RendezvousHost {
  /** Resolves when the two are connected, or the call has failed. */
  answer(open: Open, connection: ControlConnection, origin: Origin): Promise<void>
}

export class Reception {
  readonly #origin: Origin
  readonly #find: (endpoint: string) => RendezvousHost | undefined
  readonly #first: () => string | undefined
  readonly #callers: CallersByUser
  readonly #clock: Clock

  /**
   * Disconnects callers beyond `callersMax` at once; another user of this host has a lower limit. A caller of our
   * own user counts until its OPEN. Any other caller counts until it is answered or, if refused, until its
   * connection is over. `first`: name of the endpoint for callers that name none.
   */
  constructor(
    callersMax: number,
    origin: Origin,
    find: (endpoint: string) => RendezvousHost | undefined,
    first: () => string | undefined = () => undefined,
    clock: Clock = realClock,
  ) {
    const other = isOfThisHost(origin) ? OTHER_CALLERS_MAX : callersMax
    this.#callers = new CallersByUser({ own: callersMax, other, others: callersMax })
    this.#origin = origin
    this.#find = find
    this.#first = first
    this.#clock = clock
  }

  meet(socket: ControlSocket): void {
    socket.unref()
    const uid = isOfThisHost(this.#origin) ? userOfPeer(socket as net.Socket) : UNKNOWN_UID
    if (!this.#callers.enter(uid)) return void socket.destroy()
    const connection = new ControlConnection(socket, this.#clock)
    const timer = this.#clock.setTimeout(() => connection.destroy(), OPEN_TIMEOUT_MS)
    timer.unref()
    let isCounted = true
    const leave = (): void => {
      this.#clock.clearTimeout(timer)
      if (isCounted) this.#callers.leave(uid)
      isCounted = false
    }
    connection.listen({
      handleControl: message => {
        const name = message.op === 'who' ? this.#first() : undefined
        if (name !== undefined) {
          connection.send({ op: 'here', name })
          return connection.end()
        }
        if (message.op !== 'open') return connection.destroy()
        this.#clock.clearTimeout(timer)
        connection.hush()
        const met = this.#introduce(message, connection).catch((error: Error) => {
          // For example, out of memory for a channel.
          log('not answered: %s', error.message)
          connection.destroy()
        })
        // A caller of our own user stops counting now. An offer to any other caller costs memory, or a descriptor.
        if (isOwnUser(uid)) leave()
        else void met.finally(() => (connection.isEnding ? connection.over.then(leave) : leave()))
      },
      handleControlEnd: leave,
    })
  }

  async #introduce(open: Open, connection: ControlConnection): Promise<void> {
    if (open.version !== CONTROL_VERSION) {
      return refuse(connection, 'VERSION', `version ${open.version} is not ${CONTROL_VERSION}`)
    }
    const host = this.#find(open.to)
    if (host === undefined)
      return refuse(connection, 'NO_SUCH_ENDPOINT', `there is no endpoint ${open.to} here`)
    await host.answer(open, connection, this.#origin)
  }
}

export function refuse(connection: ControlConnection, code: RefusalCode, text: string): void {
  log('refused: %s', text)
  connection.send({ op: 'refuse', code, text: text.slice(0, NAME_MAX) })
  connection.end()
}
