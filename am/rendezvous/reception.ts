/** Receives callers, and passes each to the endpoint that it wants. Their messages are a stranger's input. */
import type net from 'node:net'
import { CallersByUser, isOwnUser, openLog, userOfPeer } from '../../nic/index.ts'
import { clearTimeout, setTimeout } from '../../nic/real-time.ts'
import { ControlConnection } from './control-connection.ts'
import { CONTROL_VERSION, NAME_MAX, type Open, type RefusalCode } from './control-messages.ts'

const log = openLog('fastsockets:am:rendezvous')

const OPEN_TIMEOUT_MS = 2000
/** Most callers of another user of this host that are not answered yet. */
const OTHER_CALLERS_MAX = 16
/** Stands for the user of a caller from another host, which is unknown. */
const SOMEBODY = -1

/** An endpoint of this thread, as callers use it. */
export interface RendezvousHost {
  /** Resolves when the two are connected, or the call has failed. `isRemote`: the caller may be on another host. */
  answer(open: Open, connection: ControlConnection, isRemote: boolean): Promise<void>
}

export class Reception {
  readonly #isRemote: boolean
  readonly #find: (endpoint: string) => RendezvousHost | undefined
  readonly #callers: CallersByUser

  /**
   * Disconnects callers beyond `callersMax` at once; another user of this host has a lower limit. A caller of our
   * own user counts until its OPEN. Any other caller counts until it is answered or, if refused, until its
   * connection is over.
   */
  constructor(callersMax: number, isRemote: boolean, find: (endpoint: string) => RendezvousHost | undefined) {
    const other = isRemote ? callersMax : OTHER_CALLERS_MAX
    this.#callers = new CallersByUser({ own: callersMax, other, others: callersMax })
    this.#isRemote = isRemote
    this.#find = find
  }

  meet(socket: net.Socket): void {
    socket.unref()
    const uid = this.#isRemote ? SOMEBODY : userOfPeer(socket)
    if (!this.#callers.enter(uid)) return void socket.destroy()
    const connection = new ControlConnection(socket)
    const timer = setTimeout(() => connection.destroy(), OPEN_TIMEOUT_MS)
    timer.unref()
    let isCounted = true
    const leave = (): void => {
      clearTimeout(timer)
      if (isCounted) this.#callers.leave(uid)
      isCounted = false
    }
    connection.listen({
      handleControl: message => {
        if (message.op !== 'open') return connection.destroy()
        clearTimeout(timer)
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
    await host.answer(open, connection, this.#isRemote)
  }
}

export function refuse(connection: ControlConnection, code: RefusalCode, text: string): void {
  log('refused: %s', text)
  connection.send({ op: 'refuse', code, text: text.slice(0, NAME_MAX) })
  connection.end()
}
