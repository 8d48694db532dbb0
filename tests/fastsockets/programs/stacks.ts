/**
 * Functions wait for what a socket brings, over net and over TLS, and fail then. Sends to its parent which of them each
 * error names, then what the limit of stacks is in the end.
 */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import net, { type AddressInfo, type Server, type Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import tls from 'node:tls'

const fixture = (name: string): string =>
  readFileSync(new URL(`../../../../tests/fixtures/${name}.pem`, import.meta.url), 'utf8')
const credentials = { key: fixture('key'), cert: fixture('cert') }

async function innermost(socket: Socket): Promise<never> {
  await once(socket, 'data')
  throw new Error('expected')
}

async function inner(socket: Socket): Promise<void> {
  await innermost(socket)
}

async function outer(socket: Socket): Promise<void> {
  await inner(socket)
}

async function outermost(socket: Socket): Promise<void> {
  await outer(socket)
}

async function namesOf(server: Server, connect: (port: number) => Socket): Promise<string[]> {
  server.on('error', () => {}).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const socket = connect((server.address() as AddressInfo).port)
  try {
    await outermost(socket)
    return []
  } catch (error) {
    const { stack } = error as Error
    return [innermost, inner, outer, outermost]
      .map(({ name }) => name)
      .filter(name => stack?.includes(` ${name} `))
  } finally {
    socket.destroy()
    server.close()
  }
}

const answer = (socket: Socket): unknown => socket.on('error', () => {}).write('answer')
const overNet = await namesOf(net.createServer(answer), port => net.connect(port, '127.0.0.1'))
const overTls = await namesOf(tls.createServer(credentials, answer), port =>
  tls.connect({ port, host: '127.0.0.1', rejectUnauthorized: false }),
)
await nextTurn()
process.send?.([overNet, overTls, Error.stackTraceLimit], () => process.disconnect())
