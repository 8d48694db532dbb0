/** The serving process of `npm run bench:rpc`. With `worker` it is a worker thread that exposes the calculator by Comlink. */
import http2 from 'node:http2'
import type { AddressInfo } from 'node:net'
import { parentPort } from 'node:worker_threads'
import type { ConnectRouter } from '@connectrpc/connect'
import { connectNodeAdapter } from '@connectrpc/connect-node'
import * as Comlink from 'comlink'
import { openEndpoint } from '../../am/index.ts'
import { serveConnect } from '../../am/rpc/connect/index.ts'
import { acceptPorts, serve } from '../../am/rpc/index.ts'
import { nodeEndpoint } from './comlink-node.ts'
import { Echo } from './echo_pb.ts'
import { benched, calculator, ECHO, ECHOED, type Started } from './rpc-protocol.ts'

function routes(router: ConnectRouter): void {
  router.service(Echo, {
    unary: request => request,
    async *server({ count, data }) {
      for (let i = 0; i < count; i++) yield { count: i, data }
    },
  })
}

if (parentPort !== null) {
  Comlink.expose(calculator, nodeEndpoint(parentPort))
} else {
  const endpoint = await openEndpoint()
  endpoint.setHandler(ECHO, message => message.replyMedium(ECHOED, message.payload()))
  serve(endpoint, benched, { echo: value => value, bytes: value => value, length: bytes => bytes.length })
  serveConnect(endpoint, routes)
  acceptPorts(endpoint, { channel: 'comlink' }, port => {
    Comlink.expose(calculator, port as unknown as Comlink.Endpoint)
  })
  const server = http2.createServer(connectNodeAdapter({ routes }))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  process.on('message', (message: Uint8Array) => process.send?.(message.length))
  process.once('disconnect', () => process.exit(0))
  const started: Started = { name: endpoint.name, port: (server.address() as AddressInfo).port }
  process.send?.(started)
}
