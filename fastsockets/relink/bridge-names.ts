/**
 * Whoever is given the far end of a bridge (bridge.ts) wants to know between which addresses its connection is. The kernel
 * takes it for a unix connection, and has no addresses, but a name for the near end, which says them:
 *
 *   fs-ends-XXXXXXXX-LOCAL,PORT,REMOTE,PORT      LOCAL and REMOTE as the far end is to see them; X: random, so that it is free
 *
 * Anybody may give a socket such a name. It is believed of the near end of a socket pair that our own user or our parent has
 * made, by the kernel's word, and never of who has connected to a listener.
 */
import { randomBytes } from 'node:crypto'
import { isIP } from 'node:net'
import { nameOfNearEnd } from '../../nic/index.ts'
import type { SocketName } from '../host/node-internals.ts'

/** Both ends of a connection, as a TCP handle would tell them. */
export interface EndNames {
  readonly local: SocketName
  readonly remote: SocketName
}

const NAME = /^fs-ends-[0-9a-f]{8}-([0-9a-f.:]+),(\d{1,5}),([0-9a-f.:]+),(\d{1,5})$/

/** Handles that were looked at, so that it happens once. */
const known = new WeakSet<object>()
const farEnds = new WeakSet<object>()

export function encodeNames({ local, remote }: EndNames): string {
  const ends = [local, remote].map(({ address = '', port = 0 }) => `${address},${port}`)
  return `fs-ends-${randomBytes(4).toString('hex')}-${ends.join()}`
}

/** Undefined if it is no such name. */
export function decodeNames(name: string): EndNames | undefined {
  const [, localAddress = '', localPort, remoteAddress = '', remotePort] = NAME.exec(name) ?? []
  const local = nameOf(localAddress, Number(localPort))
  const remote = nameOf(remoteAddress, Number(remotePort))
  return local && remote && { local, remote }
}

function nameOf(address: string, port: number): SocketName | undefined {
  const version = isIP(address)
  if (version === 0 || !(port > 0 && port <= 0xffff)) return undefined
  return { address, family: `IPv${version}`, port }
}

/** If `handle` is the far end of somebody's bridge: makes it tell its ends as a TCP handle does. */
export function nameFarEnd(handle: object | null): void {
  if (handle === null || known.has(handle)) return
  const { fd, getpeername } = handle as { fd?: unknown; getpeername?: unknown }
  if (getpeername !== undefined || typeof fd !== 'number' || fd < 0) return
  known.add(handle)
  const name = nameOfNearEnd(fd)
  const names = name === undefined ? undefined : decodeNames(name)
  if (names === undefined) return
  tellNames(handle, names)
  farEnds.add(handle)
}

/** Whether it was found to be one. A reset of it would be taken for a mistake: to Node it is a pipe. */
export function isFarEnd(handle: object | null): boolean {
  nameFarEnd(handle)
  return handle !== null && farEnds.has(handle)
}

export function tellNames(handle: object, { local, remote }: EndNames): void {
  const teller =
    (name: SocketName) =>
    (out: SocketName): number => {
      Object.assign(out, name)
      return 0
    }
  Object.assign(handle, { getsockname: teller(local), getpeername: teller(remote) })
}
