/** Listeners on handles that were bound before: the kernel decides which clients may call them. */
import { once } from 'node:events'
import nodeNet from 'node:net'
import t, { type Test } from 'tap'
import net, { transportOf } from '../../fastsockets/index.ts'
import { markOwn } from '../../nic/index.ts'
import { Child } from '../support/child.ts'
import { BOUND_SOCKETS, testIf } from '../support/newer-node.ts'
import { program, relinked } from '../support/relinked.ts'

/** By which transport a socket has connected, or why not. */
async function outcomeOf(socket: nodeNet.Socket): Promise<string> {
  try {
    await once(socket, 'connect')
    return transportOf(socket).transport
  } catch (error) {
    return (error as NodeJS.ErrnoException).code as string
  } finally {
    socket.destroy()
  }
}

function plainSocket(): nodeNet.Socket {
  const socket = new nodeNet.Socket()
  markOwn(socket)
  return socket
}

async function isIpv6Only(t: Test, kind: string): Promise<void> {
  const server = new Child(t, program('bound-server'), [kind], relinked())
  const { port } = await server.receive<{ port: number }>()
  t.equal(await outcomeOf(plainSocket().connect(port, '127.0.0.1')), 'ECONNREFUSED')
  t.equal(await outcomeOf(net.connect(port, '127.0.0.1')), 'ECONNREFUSED', 'relinked')
  t.equal(await outcomeOf(net.connect(port, '::1')), 'shm')
}

t.test('a handle that takes IPv6 only', t => isIpv6Only(t, 'handle'))

t.test('a descriptor that takes IPv6 only', t => isIpv6Only(t, 'fd'))

testIf(BOUND_SOCKETS, 'a bound socket that takes IPv6 only', t => isIpv6Only(t, 'bound'))
