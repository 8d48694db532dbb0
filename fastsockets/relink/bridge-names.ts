/**
 * The receiver of a bridge's far end (bridge.ts) asks for the addresses of its connection. To the kernel the far end is a
 * unix connection without addresses. So the near end is bound to an abstract name that carries them:
 *
 *   fs-ends-XXXXXXXX-LOCAL,PORT,REMOTE,PORT      LOCAL and REMOTE as the far end sees them; X: random, against collisions
 *
 * Any process may bind such a name. It is trusted only if the kernel reports that the socket is the near end of a socket
 * pair made by our own user or our parent, and never for clients that have connected to a listener.
 */
import { randomBytes } from 'node:crypto'
import { isIP } from 'node:net'
import { nameOfNearEnd } from '../../nic/index.ts'
import type { SocketName } from '../host/node-internals.ts'

/** Both ends of a connection, as a TCP handle reports them. */
export interface EndNames {
  readonly local: SocketName
  readonly remote: SocketName
}

const NAME = /^fs-ends-[0-9a-f]{8}-([0-9a-f.:]+),(\d{1,5}),([0-9a-f.:]+),(\d{1,5})$/

/** Handles already examined: the look-up costs system calls, so each handle is examined once. */
const known = new WeakSet<object>()
const farEnds = new WeakSet<object>()

export function encodeNames({ local, remote }: EndNames): string {
  const ends = [local, remote].map(({ address = '', port = 0 }) => `${address},${port}`)
  return `fs-ends-${randomBytes(4).toString('hex')}-${ends.join()}`
}

/** Undefined if `name` has another form. */
export function decodeNames(name: string): EndNames | undefined {
  const found = NAME.exec(name)
  // `isIP` compiles a long regular expression at its first call: only bridged sockets need it.
  if (found === null) return undefined
  const [, localAddress = '', localPort, remoteAddress = '', remotePort] = found
  const local = nameOf(localAddress, Number(localPort))
  const remote = nameOf(remoteAddress, Number(remotePort))
  return local && remote && { local, remote }
}

function nameOf(address: string, port: number): SocketName | undefined {
  const version = isIP(address)
  if (version === 0 || !(port > 0 && port <= 0xffff)) return undefined
  return { address, family: `IPv${version}`, port }
}

/** If `handle` is the far end of a bridge of any process: makes it report its two ends as a TCP handle does. */
export function nameFarEnd(handle: object | null | undefined): void {
  if (handle == null || known.has(handle)) return
  const { fd, getpeername } = handle as { fd?: unknown; getpeername?: unknown }
  if (getpeername !== undefined || typeof fd !== 'number' || fd < 0) return
  known.add(handle)
  const name = nameOfNearEnd(fd)
  const names = name === undefined ? undefined : decodeNames(name)
  if (names === undefined) return
  setNames(handle, names)
  farEnds.add(handle)
}

/** Whether `handle` is the far end of a bridge. Node would refuse to reset it, because to Node it is a pipe. */
export function isFarEnd(handle: object | null): boolean {
  nameFarEnd(handle)
  return handle !== null && farEnds.has(handle)
}

export function setNames(handle: object, { local, remote }: EndNames): void {
  const answerWith =
    (name: SocketName) =>
    (out: SocketName): number => {
      Object.assign(out, name)
      return 0
    }
  Object.assign(handle, { getsockname: answerWith(local), getpeername: answerWith(remote) })
}
