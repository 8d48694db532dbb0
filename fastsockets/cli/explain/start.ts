/** How a connection of a relinked program begins: on TCP, or fast. */
import { hasDevice, reasonAgainstFolder } from '../../../nic/index.ts'
import { mayBeRemote } from '../../bootstrap/remote-hosts.ts'
import { startsOnTcp } from '../../policy/own-policy.ts'
import {
  BYTES_PER_US,
  CONNECT_US,
  FIND_PRICE_US,
  IDLE_US_PER_MS,
  MOVE_PRICE_US,
  START_PRICE_US,
  WRITE_US,
} from '../../promotion/price.ts'
import { readAllStatus } from '../../status/read-status.ts'

export interface Start {
  readonly on: 'tcp' | 'fast'
  readonly because: string
}

const MIB = 2 ** 20
const LOADED = START_PRICE_US + FIND_PRICE_US

export function startOf(use: string, address: string): Start {
  if (use === 'require') return { on: 'fast', because: 'the policy requires it' }
  if (!startsOnTcp()) return { on: 'fast', because: 'start: fast' }
  if (mayBeRemote(address) && (hasDevice() || reasonAgainstFolder(false) === undefined))
    return { on: 'fast', because: 'it may go to another host or container; it waits at most 50 ms' }
  const program = `${LOADED / WRITE_US} messages, ${Math.round(LOADED / CONNECT_US)} connections or ${Math.round((LOADED * BYTES_PER_US) / MIB)} MiB`
  const idle = `${(IDLE_US_PER_MS * 1000) / WRITE_US} messages a second`
  const one = `${MOVE_PRICE_US / WRITE_US} messages`
  return {
    on: 'tcp',
    because: `once a program has exchanged about ${program} with relinked ones, beyond ${idle}, connections that go on for ${one} move, and new ones are fast at once`,
  }
}

/** The process whose listener gets connections to that place, if it is in its first phase. */
export function lightServer(address: string, port: number): number | undefined {
  const places = [address, '0.0.0.0', '::'].map(host =>
    host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`,
  )
  const isThere = ({ local }: { local: string }): boolean => places.includes(local)
  return readAllStatus().find(({ isLoaded, listeners }) => !isLoaded && listeners.some(isThere))?.pid
}
