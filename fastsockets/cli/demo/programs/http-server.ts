/**
 * An HTTP server, `node:http`: http-server.js <file>
 *
 * /hello answers in a few bytes, /file with the file. Prints its port. Ends when standard input ends.
 */
import { createReadStream, statSync } from 'node:fs'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { pipeline } from 'node:stream/promises'

export interface HttpServerReady {
  readonly port: number
}

const [path = ''] = process.argv.slice(2)
const { size } = statSync(path)

const server = http.createServer((request, response) => {
  if (request.url === '/hello') {
    response.end('hello')
  } else if (request.url === '/file') {
    response.writeHead(200, { 'content-type': 'application/octet-stream', 'content-length': size })
    // A client may close before this program notices the end of the file.
    pipeline(createReadStream(path), response).catch(() => response.destroy())
  } else {
    response.writeHead(404).end()
  }
})
server.listen(0, '127.0.0.1', () => {
  const ready: HttpServerReady = { port: (server.address() as AddressInfo).port }
  console.log(JSON.stringify(ready))
})
process.stdin.resume().once('end', () => process.exit(0))
