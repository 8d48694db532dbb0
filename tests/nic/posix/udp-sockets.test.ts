/** How many UDP sockets have a port, by the kernel's word. */
import dgram from 'node:dgram'
import { once } from 'node:events'
import t from 'tap'
import { countUdpSockets } from '../../../nic/index.ts'

async function bind(type: 'udp4' | 'udp6', address: string, port = 0): Promise<dgram.Socket> {
  const socket = dgram.createSocket({ type, ipv6Only: type === 'udp6' }).bind(port, address)
  await once(socket, 'listening')
  return socket
}

t.test(
  'a socket is alone on its port until another one has it, at any address and in either family',
  async t => {
    for (const [type, address] of [
      ['udp4', '127.0.0.2'],
      ['udp4', '127.0.0.1'],
      ['udp6', '::1'],
    ] as const) {
      const first = await bind('udp4', '127.0.0.1')
      const { port } = first.address()
      t.equal(countUdpSockets(port), 1)
      if (address === '127.0.0.1') first.connect(port)
      else {
        const second = await bind(type, address, port)
        t.equal(countUdpSockets(port), 2, `${address}, too`)
        await new Promise<void>(resolve => second.close(resolve))
      }
      t.equal(countUdpSockets(port), 1, 'it alone again, or connected')
      await new Promise<void>(resolve => first.close(resolve))
      t.equal(countUdpSockets(port), 0)
    }
  },
)
