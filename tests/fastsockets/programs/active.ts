/** argv: serve | call PORT | both. Tells what keeps this process alive, as it says itself, while a connection is open and later. */
import { once } from 'node:events'
import net, { type AddressInfo, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

const [role, port = '0'] = process.argv.slice(2)
const SETTLED_MS = 50
const internals = process as unknown as { _getActiveHandles(): object[] }

// Node itself makes it when it closes the first socket.
void process.stderr
const server = net.createServer(socket => socket.resume())

/** Sockets and servers, and what the system calls them, without the channel to the parent. */
function active(): object {
  const handles = internals._getActiveHandles()
  const named = handles.filter(
    it => it !== process.stderr && (it instanceof net.Server || it instanceof net.Socket),
  )
  return {
    handles: named.map(it => it.constructor.name).sort(),
    resources: process
      .getActiveResourcesInfo()
      .filter(name => /^TCP|Timeout/.test(name))
      .sort(),
  }
}

async function talk(socket: Socket | undefined): Promise<void> {
  process.send?.({ open: active() })
  await once(process, 'message')
  socket?.unref()
  const unreferenced = active()
  socket?.ref()
  socket?.end()
  if (socket !== undefined) await once(socket, 'close')
  // Lets the other side run.
  await sleep(SETTLED_MS)
  process.send?.({ unreferenced, closed: active() })
}

if (role !== 'call') {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
}
if (role === 'serve') {
  process.send?.({ port: (server.address() as AddressInfo).port })
  await once(server, 'connection')
  await talk(undefined)
} else {
  const to = role === 'both' ? (server.address() as AddressInfo).port : Number(port)
  const socket = net.connect(to, '127.0.0.1').resume()
  await once(socket, 'connect')
  // In one process the server has accepted by then.
  await sleep(SETTLED_MS)
  await talk(socket)
}
server.close()
process.disconnect?.()
