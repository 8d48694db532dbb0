/** How a TCP listener is bound, and a second one in the same way. */
import net from 'node:net'
import { isIpv6Only, sharesPort } from '../../nic/index.ts'
import type { TcpHandle } from './node-internals.ts'
import { CAN_SHARE_PORTS } from './node-versions.ts'

type CreateServerHandle = (
  address: string,
  port: number,
  family: number,
  fd: undefined,
  flags: number,
) => TcpHandle | number

const { _createServerHandle } = net as unknown as { _createServerHandle?: CreateServerHandle }

/** Options with which a TCP listener is bound, besides its address. */
export interface Binding {
  readonly ipv6Only: boolean
  /** `reusePort`: several listeners share the port, and the kernel distributes clients among them. */
  readonly isPortShared: boolean
}

/** libuv's flags of uv_tcp_bind, as net.js passes them to a handle. */
const UV_TCP_IPV6ONLY = 1
const UV_TCP_REUSEPORT = 2

/**
 * The binding of a listener. Read from the kernel, because the program may have bound the descriptor itself; from
 * `flags` if the handle has no descriptor.
 */
export function bindingOf({ fd = -1 }: TcpHandle, flags: number): Binding {
  if (fd < 0) return { ipv6Only: (flags & UV_TCP_IPV6ONLY) !== 0, isPortShared: false }
  return { ipv6Only: isIpv6Only(fd), isPortShared: CAN_SHARE_PORTS && sharesPort(fd) }
}

/** A bound TCP handle that does not listen yet, or a negative errno. */
export function createServerHandle(
  address: string,
  port: number,
  family: number,
  { ipv6Only, isPortShared }: Binding,
): TcpHandle | number {
  const flags = (ipv6Only ? UV_TCP_IPV6ONLY : 0) | (isPortShared ? UV_TCP_REUSEPORT : 0)
  return (_createServerHandle as CreateServerHandle)(address, port, family, undefined, flags)
}
