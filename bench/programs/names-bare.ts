/**
 * The reference for the daemon of the name service: a server of `node:http` that does nothing. It answers every
 * look-up and registration with the same entry, at once, out of memory, and keeps nothing.
 *
 *   argv: path of its socket                       stays until its standard input ends
 */
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'

const LEASE = JSON.stringify({ id: '0123456789abcdef', owner: 'uid:0', ttlMs: 3_600_000, names: 0 })
const ENTRY = JSON.stringify({
  name: 'bench/00000',
  revision: 12_345,
  lease: '0123456789abcdef',
  owner: 'uid:0',
  record: {
    kind: 'endpoint',
    endpoint: '0123456789abcdef0123456789abcdef',
    host: 'fedcba9876543210fedcba9876543210',
    pid: 12_345,
    uid: 0,
    drivers: [{ name: 'shm', address: Buffer.alloc(40, 7).toString('base64') }],
    tag: '0000000000000000',
    version: 1,
    labels: { application: 'bench' },
  },
})

const [path = ''] = process.argv.slice(2)
const server = createServer((request, response) => {
  if (request.method === 'GET') return answer(response, 200, ENTRY)
  request.resume().once('end', () => {
    if (request.method === 'POST') answer(response, 201, LEASE)
    else answer(response, 200, ENTRY)
  })
}).listen(path)
await once(server, 'listening')
process.stdout.write(`${JSON.stringify({ listening: true })}\n`)
process.stdin.resume()
await once(process.stdin, 'end')
process.exit()

/** With the headers that the daemon's answers have. */
function answer(response: ServerResponse, status: number, text: string): void {
  const headers = ['cache-control', 'no-store', 'content-type', 'application/json']
  headers.push('content-length', String(Buffer.byteLength(text)), 'fastsockets-cursor', '0123456789ab-12345')
  response.writeHead(status, headers).end(text)
}
