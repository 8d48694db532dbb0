/** The address from which the kernel would send to another one, by its routes. Sends nothing. */
import { isIPv4 } from 'node:net'
import { AF_INET, AF_INET6, SOCK_CLOEXEC, SOCK_DGRAM } from './constants.ts'
import { loadLibc } from './libc.ts'
import { addressIn, mappedAddress, SOCKADDR_SIZE, socketAddress, textOfAddress } from './socket-address.ts'

/** Any port will do. */
const PORT = 9

/** Undefined if there is no route. */
export function sourceAddressTo(address: string): string | undefined {
  const { libc } = loadLibc()
  const family = isIPv4(address) ? AF_INET : AF_INET6
  const fd = libc?.socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0) ?? -1
  if (libc === undefined || fd < 0) return undefined
  const target = socketAddress(mappedAddress(address), PORT)
  const own = Buffer.alloc(SOCKADDR_SIZE)
  const length = Buffer.alloc(4)
  length.writeInt32LE(own.length)
  const isFound = libc.connect(fd, target, target.length) === 0 && libc.getsockname(fd, own, length) === 0
  libc.close(fd)
  return isFound ? textOfAddress(addressIn(own)) : undefined
}
