/**
 * Listens on all addresses of IPv6, and on none of IPv4, on what was bound before. argv: 'handle', 'fd' or 'bound'. Says
 * { port }.
 */
import net from 'node:net'

const IPV6_ONLY = 1
const { BoundSocket, _createServerHandle } = net as unknown as {
  BoundSocket: new (options: object) => object
  _createServerHandle(...args: unknown[]): { readonly fd: number }
}

const server = net.createServer(socket => socket.pipe(socket))
const tell = (): void => {
  process.send?.({ port: (server.address() as net.AddressInfo).port })
}
const kind = process.argv[2]
if (kind === 'bound') server.listen(new BoundSocket({ ipv6Only: true }), tell)
else {
  const handle = _createServerHandle('::', 0, 6, undefined, IPV6_ONLY)
  server.listen(kind === 'fd' ? { fd: handle.fd } : handle, tell)
}
process.on('disconnect', () => process.exit())
