/** The kernel of one simulated process, as connecting knows it: virtual time, and the sockets of the simulated network. */
import net from 'node:net'
import type { BootstrapNetwork } from '../../fastsockets/bootstrap/bootstrap-server.ts'
import type { Kernel } from '../../fastsockets/bootstrap/kernel.ts'
import type { Publication } from '../../nic/index.ts'
import type { SimulatedHost, SimulatedNetwork } from '../../nic/simulated/index.ts'
import type { ProgramSockets } from './program-sockets.ts'

/** The user of all programs, and of strangers whom no program allows. */
export const OWN_USER = 4242
export const OTHER_USER = 4243

/** Of all processes: the places where programs of the other user listen. */
export type StrangePlaces = Set<string>

export interface ProgramNetwork {
  readonly network: SimulatedNetwork
  readonly host: SimulatedHost
  readonly sockets: ProgramSockets
  /** The addresses of the process's network namespace. */
  isOwnAddress(address: string): boolean
  /** The process's own address. */
  readonly address: string
  readonly strangePlaces?: StrangePlaces
  /** Before abstract unix names, which are of one network namespace. */
  readonly namespace?: string
  /** Random: where the process begins among listeners that share a place. */
  readonly firstTurn?: number
  readonly publish?: Kernel['publish']
}

const NO_FOLDER: Kernel['publish'] = (): Publication | string => 'there is no rendezvous folder'
const REFRESH_MS = 2000

export function programKernel({
  network,
  host,
  sockets,
  isOwnAddress,
  address,
  strangePlaces,
  namespace = '',
  firstTurn = 0,
  publish = NO_FOLDER,
}: ProgramNetwork): Kernel {
  let turn = firstTurn
  return {
    clock: host.clock,
    newId: () => network.newIdentity(),
    reachableOwnAddress: one => (isOwnAddress(one) ? one : undefined),
    sourceAddressTo: () => address,
    userOf: connection =>
      strangePlaces?.has(sockets.placeOf(connection) ?? '') === true ? OTHER_USER : OWN_USER,
    allowsUser: uid => uid !== OTHER_USER,
    isOwnUser: uid => uid === OWN_USER,
    mayServe: uid => uid !== OTHER_USER,
    listenAt: path => listenAs(sockets, namespace + path),
    publish,
    nextTurn: () => turn++,
    refreshRegularly: refresh => {
      let isOver = false
      const again = (): void => {
        if (isOver) return
        refresh()
        host.clock.setTimeout(again, REFRESH_MS)
      }
      host.clock.setTimeout(again, REFRESH_MS)
      return () => {
        isOver = true
      }
    },
  }
}

/** Hashed ports of a process; strangers of other hosts may ask. */
export function programPorts(sockets: ProgramSockets): BootstrapNetwork {
  return {
    mayAsk: () => true,
    listen: ({ address }, port) => listenAs(sockets, `${address}:${port}`, port),
  }
}

/** A server of Node's whose callers come through the simulated kernel; undefined if the place is taken. */
function listenAs(sockets: ProgramSockets, place: string, port = 0): net.Server | undefined {
  const server = new net.Server()
  if (!sockets.listen(place, socket => server.emit('connection', socket))) return undefined
  const open = server as unknown as { _handle: object | null }
  open._handle = {}
  return Object.assign(server, {
    address: () => ({ address: '', port, family: 'IPv4' }),
    close: () => {
      open._handle = null
      sockets.unlisten(place)
    },
  })
}
