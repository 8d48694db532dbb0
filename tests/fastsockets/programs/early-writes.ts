/**
 * A server of http2 that says { port }, and, when asked, how often it has written to its connection, and how often ticks have run between
 * requests: { writes, ticks }. With an argument it awaits one request after another.
 */
import { once } from 'node:events'
import http2, { type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo, Socket } from 'node:net'

type Handle = { writev(...args: unknown[]): number }

let writes = 0
const server = http2.createServer()
// Before http2 takes the handle.
server.prependListener('connection', (socket: Socket) => {
  const { _handle: handle } = socket as unknown as { _handle: Handle }
  const { writev } = handle
  handle.writev = (...args) => {
    writes++
    return writev.apply(handle, args)
  }
})
let ticks = 0
let isTickDue = false

function answer(stream: ServerHttp2Stream): void {
  if (!isTickDue)
    process.nextTick(() => {
      ticks++
      isTickDue = false
    })
  isTickDue = true
  stream.respond({ ':status': 200 })
  stream.end('hello')
}

async function answerEach(): Promise<void> {
  for (;;) {
    const [stream] = (await once(server, 'stream')) as [ServerHttp2Stream]
    answer(stream)
  }
}

if (process.argv.length > 2) void answerEach()
else server.on('stream', answer)
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }))
process.on('message', () => process.send?.({ writes, ticks }))
