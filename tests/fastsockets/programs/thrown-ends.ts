/**
 * Listeners of 'end' throw, as next ticks after feeds of native code. After three of them, sends what the handler of
 * uncaught exceptions has received.
 */
import { createHook } from 'node:async_hooks'
import http from 'node:http'
import type { AddressInfo } from 'node:net'

const ROUNDS = 3
createHook({ init: () => {} }).enable()
const heard: string[] = []

const server = http.createServer((_, response) => response.end('x'))
server.listen(0, '127.0.0.1', get)

function get(): void {
  const { port } = server.address() as AddressInfo
  http.get({ port, host: '127.0.0.1', agent: false }, response => {
    response.resume()
    response.on('end', () => {
      throw new Error(`end ${heard.length}`)
    })
  })
}

process.on('uncaughtException', error => {
  heard.push(error.message)
  if (heard.length < ROUNDS) get()
  else process.send?.(heard, () => process.exit())
})
