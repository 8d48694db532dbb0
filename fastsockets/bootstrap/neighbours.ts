/**
 * Listeners of other network namespaces of this host, by the rendezvous folder. A neighbour has published its listener
 * under the address and port that a client calls.
 */
import {
  hasName,
  listenerName,
  reasonAgainstFolder,
  rendezvousFolder,
  SLOTS,
  slotName,
  unixListenerName,
} from '../../nic/index.ts'
import { allOwnAddresses, isLoopback } from '../host/addresses.ts'
import { type Family, fileOfKey, UNIX } from '../host/unix-paths.ts'
import { type FallbackReason, fallbackReason } from '../reasons.ts'
import type { Sought } from './bootstrap-client.ts'
import { type Kernel, realKernel } from './kernel.ts'

/** Names of a listener on all addresses. */
const NAMES_MAX = 16
/** The first byte of an IPv4 address that no host has, from there on; of an IPv6 address. */
const MULTICAST_V4 = 224
const MULTICAST_V6 = /^ff/

/** A listener's place, as `BootstrapPlace` has it. */
export interface Place {
  readonly address: string
  readonly port: number
  readonly family: Family
  readonly ipv6Only: boolean
  /** `tcp`, or a UDP socket. */
  readonly protocol?: 'udp'
}

/** Where the folder has the listener; undefined for an abstract name, which is of one network namespace. */
function nameOf({ address, port, family, protocol }: Sought): string | undefined {
  // With a zone an address is of one namespace.
  if (family !== UNIX) return address.includes('%') ? undefined : listenerName(address, port, protocol)
  const file = fileOfKey(address)
  return file && unixListenerName(file.dev, file.ino)
}

/** The name by which the folder leads to a listener of another namespace; undefined if it has none. */
export function neighbourName(sought: Sought): string | undefined {
  const name = nameOf(sought)
  return name !== undefined && hasName(name) ? name : undefined
}

/** The names to call for a listener: the slots of the threads that share it, in turn, and then `name` itself. */
export function namesToCall(name: string, kernel: Kernel): readonly string[] {
  const slots = Array.from({ length: SLOTS }, (_, slot) => slotName(name, slot)).filter(one => hasName(one))
  const first = kernel.nextTurn() % Math.max(1, slots.length)
  return [...slots.slice(first), ...slots.slice(0, first), name]
}

/** Why no neighbour was found at an address that is not one of this namespace. */
export function reasonAgainstNeighbour(address: string, port: number): FallbackReason {
  const missing = `there is no ${rendezvousFolder()}/${listenerName(address, port)}`
  return fallbackReason('NO_RENDEZVOUS', reasonAgainstFolder(false) ?? missing)
}

/** Why no other namespace finds the listener at an address of this one; undefined if its name is in the folder. */
export function reasonAgainstPublished(address: string, port: number): string | undefined {
  const name = listenerName(address, port)
  if (hasName(name)) return undefined
  return reasonAgainstFolder(true) ?? `there is no ${rendezvousFolder()}/${name}`
}

/** The addresses at which other namespaces may reach the listener; none for one on a loopback address. */
export function sharedAddresses(
  { address, family, ipv6Only }: Place,
  kernel: Kernel = realKernel,
): readonly string[] {
  if (family === UNIX) return []
  if (address !== '0.0.0.0' && address !== '::')
    return isReachableFromElsewhere(address, kernel) ? [address] : []
  const v6 = family === 6 ? allOwnAddresses(6) : []
  const v4 = family === 4 || !ipv6Only ? allOwnAddresses(4) : []
  return [...v4, ...v6].filter(one => !isLoopback(one)).slice(0, NAMES_MAX)
}

/** Whether other namespaces may reach the listener, now or with an address that this namespace gets. */
export function isForFolder(place: Place): boolean {
  const { address, family } = place
  return family === UNIX ? nameOf(place) !== undefined : !isLoopback(address) && !address.includes('%')
}

/** All names under which the listener is published. */
export function namesOf(place: Place, kernel: Kernel = realKernel): readonly string[] {
  const { port, family, protocol } = place
  if (family !== UNIX)
    return sharedAddresses(place, kernel).map(address => listenerName(address, port, protocol))
  const name = nameOf(place)
  return name === undefined ? [] : [name]
}

/** Whether a peer of another namespace may say that it is at `address`: programs trust a peer's address. */
export function mayBeNeighbours(address: string, kernel: Kernel = realKernel): boolean {
  if (kernel.reachableOwnAddress(address) !== undefined || MULTICAST_V6.test(address)) return false
  return address.includes(':') || Number(address.split('.')[0]) < MULTICAST_V4
}

/** Whether `address` is one of this namespace, by which other namespaces may call it. */
export function isReachableFromElsewhere(address: string, kernel: Kernel = realKernel): boolean {
  return kernel.reachableOwnAddress(address) === address && !isLoopback(address)
}
