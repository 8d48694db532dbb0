/** The network device of a connection: the one whose address the other host has reached, if both are on its segment. */
import { BlockList } from 'node:net'
import { networkInterfaces } from 'node:os'
import { NicError } from '../errors.ts'
import type { NetworkPath } from '../nic.ts'
import {
  ARPHRD_ETHER,
  ARPHRD_LOOPBACK,
  IFF_RUNNING,
  IFF_UP,
  SIOCGIFFLAGS,
  SIOCGIFHWADDR,
  SIOCGIFINDEX,
  SIOCGIFMTU,
} from '../posix/constants.ts'
import { type Libc, systemError } from '../posix/libc.ts'
import { MAC_SIZE } from './frame-layout.ts'

export interface Device {
  readonly name: string
  readonly index: number
  readonly mtu: number
  readonly mac: Buffer
}

/** Within a host. */
const LOOPBACK = 'lo'
const MAPPED_PREFIX = '::ffff:'
/** struct ifreq of netdevice(7): the name, then what is asked for. */
const NAME_SIZE = 16
const REQUEST_SIZE = 40
const AT_VALUE = NAME_SIZE
const AT_MAC = NAME_SIZE + 2

/** Throws `ERR_NIC_UNAVAILABLE` with the reason if no device here leads to the peer. `fd`: any socket. */
export function deviceFor(libc: Libc, fd: number, path: NetworkPath | undefined): Device {
  const name = path === undefined ? LOOPBACK : deviceOnSegment(path)
  const request = Buffer.alloc(REQUEST_SIZE)
  request.write(name, 'latin1')
  const ask = (what: number): void => {
    if (libc.ioctl(fd, what, request) < 0) throw systemError(libc, `ioctl of ${name}`)
  }
  ask(SIOCGIFFLAGS)
  const flags = request.readUInt16LE(AT_VALUE)
  if ((flags & IFF_UP) === 0 || (flags & IFF_RUNNING) === 0) throw unusable(`${name} has no carrier`)
  ask(SIOCGIFHWADDR)
  const kind = request.readUInt16LE(AT_VALUE)
  if (kind !== ARPHRD_ETHER && kind !== ARPHRD_LOOPBACK) throw unusable(`${name} is not an Ethernet device`)
  const mac = Buffer.from(request.subarray(AT_MAC, AT_MAC + MAC_SIZE))
  ask(SIOCGIFMTU)
  const mtu = request.readInt32LE(AT_VALUE)
  ask(SIOCGIFINDEX)
  return { name, index: request.readInt32LE(AT_VALUE), mtu, mac }
}

function deviceOnSegment({ own, peer }: NetworkPath): string {
  const here = plain(own)
  for (const [name, addresses = []] of Object.entries(networkInterfaces())) {
    const found = addresses.find(({ address }) => address === here)
    if (found === undefined) continue
    const segment = new BlockList()
    const [network = '', prefix] = (found.cidr ?? '').split('/')
    const family = found.family === 'IPv4' ? 'ipv4' : 'ipv6'
    segment.addSubnet(network, Number(prefix), family)
    if (!segment.check(plain(peer), family))
      throw unusable(`${plain(peer)} is not on the segment of ${name}, and frames are not routed`)
    // An alias, as eth0:1, is of the same device.
    return name.split(':')[0] as string
  }
  throw unusable(`no network device here has the address ${here}`)
}

function plain(address: string): string {
  return address.startsWith(MAPPED_PREFIX) ? address.slice(MAPPED_PREFIX.length) : address
}

function unusable(reason: string): NicError {
  return new NicError('ERR_NIC_UNAVAILABLE', reason)
}
