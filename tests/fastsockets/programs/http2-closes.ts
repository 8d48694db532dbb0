/** Requests of several sessions are closed in one turn. Tells in which order they say 'close'. */
import { once } from 'node:events'
import http2, { type ClientHttp2Stream } from 'node:http2'
import type { AddressInfo } from 'node:net'

const SESSIONS = 3

const server = http2.createServer()
server.on('stream', stream => stream.on('error', () => {}))
await new Promise(resolve => server.listen(0, '127.0.0.1', () => resolve(undefined)))

const closed: string[] = []
const requests: ClientHttp2Stream[][] = []
for (let i = 0; i < SESSIONS; i++) {
  const session = http2.connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  await once(session, 'remoteSettings')
  const own = Array.from({ length: SESSIONS }, () => session.request({}, { endStream: false }))
  for (const [j, request] of own.entries()) request.on('close', () => closed.push(`${i}.${j}`))
  requests.push(own)
}
const closing = requests.flatMap((own, i) => own.slice(0, i + 1))
const over = Promise.all(closing.map(request => once(request, 'close')))
for (const request of closing) request.close()
await over
process.send?.(closed, () => process.exit())
