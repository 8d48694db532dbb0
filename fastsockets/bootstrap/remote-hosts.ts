/**
 * Other hosts: may a client ask them for the fast way, and may they ask us? A host without Fast Sockets would see a
 * stranger call one of its ports, so one of three must vouch for it: a rule of the policy, a record of the name
 * service, or the network (the host is in a subnet of an RDMA device of ours or, where the policy names `ethernet`, of any
 * device).
 */
import { BlockList, isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import { isDaemonExpected } from '../../nameservice/socket-path.ts'
import {
  type Driver,
  deviceAddress,
  drivers,
  hasDevice,
  mappedAddress,
  textOfAddress,
} from '../../nic/index.ts'
import { performance } from '../../nic/performance.ts'
import { setImmediate } from '../../nic/real-time.ts'
import { isLoopback, reachableOwnAddress, reasonAgainstAddress, withoutMapping } from '../host/addresses.ts'
import type { SocketName } from '../host/node-internals.ts'
import { allowsDriver, decide } from '../policy/own-policy.ts'
import { type FallbackReason, fallbackReason } from '../reasons.ts'
import { neighbourName, reasonAgainstNeighbour } from './neighbours.ts'

/** The drivers between hosts, in order of preference. */
export const REMOTE_DRIVERS: readonly string[] = ['verbs', 'ethernet']
/** The most that a client waits for a host that does not answer. */
export const REMOTE_TIMEOUT_MS = 50
/** For how long a client does not ask such a host again. */
const SILENT_HOST_TTL_MS = 60_000
const SILENT_HOSTS_MAX = 1024
/** How long a list of the network interfaces stays valid. */
const SUBNETS_TTL_MS = 1000

const silentHosts = new Map<string, number>()
/** Never forgotten: the system does not list a device while its carrier is lost, and its channels may outlast that. */
const subnets = new BlockList()
const knownSubnets = new Set<string>()
let lookedAtMs = Number.NEGATIVE_INFINITY

/** `hashed`: call the hashed ports. `named`: call only the port that the name service names. A reason: do not call. */
export type Asking = 'hashed' | 'named' | FallbackReason

/** Those that the policy allows and that this machine has. */
export function remoteDrivers(): readonly Driver[] {
  return REMOTE_DRIVERS.flatMap(name => {
    const driver = allowsDriver(name) ? drivers.get(name) : undefined
    return driver?.availability().usable ? [driver] : []
  })
}

/** Whether a driver may lead to other hosts; opens nothing. */
export function mayReachHosts(): boolean {
  return (hasDevice() && allowsDriver('verbs')) || allowsDriver('ethernet')
}

let isPrepared = false

/** Opens the devices before the first caller arrives: a caller waits no longer than REMOTE_TIMEOUT_MS. */
export function prepareRemote(address: string): void {
  if (isPrepared || isLoopback(address) || !mayReachHosts()) return
  isPrepared = true
  setImmediate(remoteDrivers).unref()
}

/** How a client may look for a bootstrap at `address` of another host. */
export function askingOf(address: string, port: number): Asking {
  const why = reasonAgainstDrivers()
  if (why !== undefined) return fallbackReason('REMOTE_HOST', why)
  if ((silentHosts.get(address) ?? 0) > performance.now())
    return fallbackReason('SILENT', 'the host did not answer a moment ago')
  const { use, isForAddress } = decide('client', address, port)
  if (isForAddress || use === 'require' || isInSubnet(address)) return 'hashed'
  if (isDaemonExpected()) return 'named'
  const devices = allowsDriver('ethernet') ? 'a device here' : 'an RDMA device'
  return fallbackReason('REMOTE_HOST', `it is in no subnet of ${devices}, and no rule of a policy names it`)
}

/**
 * `address`, in the kernel's form, if a client may ask the other namespace or host at it, else the reason. A CONNECT names the
 * address as the server's kernel does.
 */
export function remoteAddress(address: string, port: number): string | FallbackReason {
  const against = reasonAgainstAddress(address)
  if (against.code !== 'REMOTE_HOST') return against
  const family = address.includes(':') ? 6 : 4
  const asking = neighbourName({ address, port, family }) ?? askingOf(address, port)
  if (typeof asking !== 'string') return reasonElsewhere(asking, address, port)
  return family === 6 ? textOfAddress(mappedAddress(address)) : address
}

/** What `askingOf` says against another host; where no driver leads to one, why no neighbour was found. */
export function reasonElsewhere(asking: FallbackReason, address: string, port: number): FallbackReason {
  return mayReachHosts() ? asking : reasonAgainstNeighbour(address, port)
}

/** Why no fast way leads to the peer of a connection over TCP; undefined if one may, or its address is one of this host. */
export function reasonAgainstPeer({ address, port }: SocketName): FallbackReason | undefined {
  if (address === undefined || port === undefined) return undefined
  const plain = withoutMapping(address)
  if (reachableOwnAddress(plain) !== undefined) return undefined
  const target = remoteAddress(plain, port)
  return typeof target === 'string' ? undefined : target
}

/** Whether `host` may be another host, or another container of this one: a name may be any. */
export function mayBeRemote(host: string): boolean {
  return host !== 'localhost' && (isIP(host) === 0 || reachableOwnAddress(host) === undefined)
}

/** Whether a connection to `host` may be fast from its first byte though it leads elsewhere. */
export function mayLeadElsewhere(host: string, port: number): boolean {
  const family = isIP(host)
  if (!mayBeRemote(host)) return false
  if (family === 0 || mayReachHosts()) return true
  return neighbourName({ address: host, port, family: family === 6 ? 6 : 4 }) !== undefined
}

/** Whether a caller at `peer`, which called our `address`, may connect to the listener on `port`. */
export function mayAskUs(peer: string, address: string, port: number): boolean {
  if (remoteDrivers().length === 0) return false
  const { use, isForAddress } = decide('server', address, port)
  return use !== 'tcp' && (isForAddress || isInSubnet(peer) || isDaemonExpected())
}

export function rememberSilent(address: string): void {
  if (silentHosts.size >= SILENT_HOSTS_MAX) silentHosts.clear()
  silentHosts.set(address, performance.now() + SILENT_HOST_TTL_MS)
}

function reasonAgainstDrivers(): string | undefined {
  if (remoteDrivers().length > 0) return undefined
  const reasons = REMOTE_DRIVERS.filter(allowsDriver).map(name => {
    const availability = drivers.get(name)?.availability()
    // The code is one of those that docs/guide/rdma.md lists.
    return availability?.usable === false ? `${availability.code}: ${availability.reason}` : ''
  })
  return reasons.length > 0 ? reasons.join('; ') : `the policy allows none of ${REMOTE_DRIVERS.join(', ')}`
}

/** Looks only at the subnets of the interface that has the RDMA device's address; all devices may carry raw frames. */
function isInSubnet(address: string): boolean {
  const family = isIP(address)
  if (family === 0 || address.includes('%')) return false
  const nowMs = performance.now()
  if (nowMs - lookedAtMs > SUBNETS_TTL_MS) {
    findSubnets()
    lookedAtMs = nowMs
  }
  return subnets.check(address, family === 6 ? 'ipv6' : 'ipv4')
}

function findSubnets(): void {
  const device = deviceAddress()
  const takesAll = allowsDriver('ethernet')
  for (const entries of Object.values(networkInterfaces())) {
    if (!takesAll && !entries?.some(({ address }) => address === device)) continue
    for (const { cidr, family, scopeid, internal } of entries ?? []) {
      if (cidr === null || internal || scopeid || knownSubnets.has(cidr)) continue
      knownSubnets.add(cidr)
      const [network = '', bits] = cidr.split('/')
      subnets.addSubnet(network, Number(bits), family === 'IPv6' ? 'ipv6' : 'ipv4')
    }
  }
}
