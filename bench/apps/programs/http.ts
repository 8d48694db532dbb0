/** node:http under autocannon: with keep-alive, and with a connection each. */
import http from 'node:http'
import { loadHttp } from './http-load.ts'
import { play, portOf } from './program.ts'

const BODY = Buffer.alloc(1024, 'x')

play({
  serve: () => portOf(http.createServer((_request, response) => response.end(BODY))),
  call: async (port, ms) => [
    await loadHttp('keep-alive', port, ms, 'keep-alive'),
    await loadHttp('connection each', port, ms, 'connection each'),
  ],
})
