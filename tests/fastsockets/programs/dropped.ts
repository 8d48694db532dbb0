/**
 * Connects to a server of its own and to a raw server by TCP and by a unix path, opens an endpoint, gives up the right to use
 * the network, and tries all of it again. Tells what came of each.
 */
import dgram from 'node:dgram'
import { once } from 'node:events'
import net, { type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openEndpoint } from '../../../am/index.ts'
import { boundHandles } from '../../../fastsockets/datagram/udp-notes.ts'
import { transportOf } from '../../../fastsockets/handle/transport.ts'
import { connect, listen } from '../../../fastsockets/raw/index.ts'

interface Failed {
  readonly code?: string
  readonly message: string
  readonly syscall?: string
}

const isPlain = process.argv[2] === 'plain'
const path = join(tmpdir(), `dropped-${process.pid}`)
const wires = new Set<string>()
process.on('uncaughtException', error => process.send?.({ uncaught: error.message }))

function describe(failed: unknown): object {
  const { code, message, syscall } = failed as Failed
  return { code, message, syscall }
}

/** All that a connection or a listener says, in order. */
function hear(start: () => net.Socket | net.Server): Promise<unknown> {
  return new Promise(resolve => {
    const heard: unknown[] = []
    try {
      const made = start()
      const isServer = made instanceof net.Server
      made.on('error', error => {
        heard.push(describe(error))
        if (isServer) resolve(heard)
      })
      made.on('listening', () => {
        heard.push('listening')
        made instanceof net.Server && made.close()
      })
      made.on('connect', () => {
        heard.push('connect')
        wires.add(transportOf(made as net.Socket).transport)
        made instanceof net.Socket && made.destroy()
      })
      made.on('close', () => resolve([...heard, 'close']))
    } catch (error) {
      resolve({ thrown: describe(error) })
    }
  })
}

const settle = (started: Promise<unknown>): Promise<unknown> => started.then(() => 'done', describe)

const server = net.createServer(socket => socket.resume()).listen(0, '127.0.0.1')
const unixServer = net.createServer(socket => socket.resume()).listen(path)
await Promise.all([once(server, 'listening'), once(unixServer, 'listening')])
const { port } = server.address() as AddressInfo
const rawServer = await listen({ port: 0, host: '127.0.0.1' })
const endpoint = isPlain ? undefined : await openEndpoint()

const receiver = dgram.createSocket('udp4').bind(0, '127.0.0.1')
await once(receiver, 'listening')
const sender = dgram.createSocket('udp4')
sender.connect(receiver.address().port, '127.0.0.1')
await once(sender, 'connect')
const hasMoved = (): boolean =>
  [...boundHandles.values()].some(({ carrier }) => carrier?.pairs().some(({ sends }) => sends === 'shm'))

/** What a datagram comes to, first over the kernel, then once the pair has left it. */
async function send(): Promise<unknown> {
  try {
    do {
      sender.send('x')
      await once(receiver, 'message')
    } while (!isPlain && !hasMoved())
    return 'received'
  } catch (error) {
    return describe(error)
  }
}

async function attempt(): Promise<object> {
  return {
    connect: await hear(() => net.connect(port, '127.0.0.1')),
    path: await hear(() => net.connect(path)),
    name: await hear(() => net.connect(port, 'localhost')),
    datagram: await send(),
    listen: await hear(() => net.createServer().listen(`${path}-other`)),
    ...(isPlain
      ? {}
      : {
          raw: await settle(
            connect({ port: rawServer.address.port, host: '127.0.0.1' }).then(it => it.close()),
          ),
          endpoint: await settle(openEndpoint().then(it => it.close())),
          map: await settle(
            (endpoint as Awaited<ReturnType<typeof openEndpoint>>).map(0, endpoint?.name ?? ''),
          ),
        }),
  }
}

const before = await attempt()
;(process as unknown as { permission: { drop(scope: string): void } }).permission.drop('net')
const after = await attempt()
process.send?.({ before, after, wires: [...wires] }, () => process.exit())
