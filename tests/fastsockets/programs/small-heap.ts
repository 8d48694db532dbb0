/**
 * argv: a port to fetch from, as often as it is sent; serves if there is none, and reports how much V8 keeps on
 * request.
 */
import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { getHeapSpaceStatistics } from 'node:v8'

const [, , port] = process.argv

if (port === undefined) {
  const server = http.createServer((_, response) => response.end('hello'))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  process.send?.({ port: (server.address() as AddressInfo).port })
} else {
  process.send?.({ isReady: true })
}

const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
process.on('message', async ({ count }: { count?: number }) => {
  for (let i = 0; i < (count ?? 0); i++) await fetchOnce()
  process.send?.({ keptBytes: keptBytes() })
})

async function fetchOnce(): Promise<void> {
  const [response] = (await once(http.get({ agent, host: '127.0.0.1', port }), 'response')) as [
    http.IncomingMessage,
  ]
  await once(response.resume(), 'end')
}

/** What V8 counts before it begins to mark: all but the young, and what is in Node's snapshot for reading only. */
function keptBytes(): number {
  global.gc?.()
  const kept = getHeapSpaceStatistics().filter(({ space_name: name }) => !/^(new|read_only)_/.test(name))
  return kept.reduce((sum, { space_used_size: size }) => sum + size, 0)
}
