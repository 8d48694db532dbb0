/** Hears which endpoint callers want, and hands them over to it. What they say is a stranger's word. */
import type net from 'node:net'
import { CallersByUser, isOwnUser, openLog, userOfPeer } from '../../nic/index.ts'
import { clearTimeout, setTimeout } from '../../nic/real-time.ts'
import { ControlConnection } from './control-connection.ts'
import { CONTROL_VERSION, NAME_MAX, type Open, type RefusalCode } from './control-messages.ts'

const log = openLog('fastsockets:am:rendezvous')

const OPEN_TIMEOUT_MS = 2000
/** Callers of another user of this host who were not answered yet. */
const OTHER_CALLERS_MAX = 16
/** Nobody knows who calls from another host. */
const SOMEBODY = -1

/** An endpoint of this thread, as a caller meets it. */
export interface RendezvousHost {
  /** Resolves when the two have met, or will not. `isRemote`: the caller may be on another host. */
  answer(open: Open, connection: ControlConnection, isRemote: boolean): Promise<void>
}

export class Reception {
  readonly #isRemote: boolean
  readonly #find: (endpoint: string) => RendezvousHost | undefined
  readonly #callers: CallersByUser

  /**
   * More than `callersMax` at once are hung up on: who has not said what it wants, and of those from elsewhere or of another
   * user, who are fewer, who was not answered, or was refused and has not gone.
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
          // No memory for a channel, perhaps.
          log('not answered: %s', error.message)
          connection.destroy()
        })
        // What we do for ourselves is no loss; an offer to somebody else costs memory, or a descriptor.
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
