/** express under autocannon: a small JSON document, with keep-alive. */
import http from 'node:http'
import express from 'express'
import { loadHttp } from './http-load.ts'
import { play, portOf } from './program.ts'

const app = express()
app.get('/', (request, response) => {
  response.json({ hello: 'world', path: request.path })
})

play({
  serve: () => portOf(http.createServer(app)),
  call: async (port, ms) => [await loadHttp('json', port, ms, 'keep-alive')],
})
