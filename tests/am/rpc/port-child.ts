/** The serving process of ports.test.ts: every RPC system on a channel of its own. argv: a list of drivers. */
import { os } from '@orpc/server'
import { RPCHandler } from '@orpc/server/message-port'
import { createBirpc } from 'birpc'
import { newMessagePortRpcSession, RpcTarget } from 'capnweb'
import * as Comlink from 'comlink'
import { openEndpoint } from '../../../am/index.ts'
import { acceptPorts, type FastPort } from '../../../am/rpc/index.ts'
import { optionsOf } from '../../support/driver-lists.ts'
import { loadSdk, PortTransport, type Sdk } from './mcp-transport.ts'

/** What Comlink exposes. */
export const calculator = {
  base: 40,
  add: (a: number, b: number): number => a + b,
  fail: (): never => {
    throw new RangeError('no')
  },
}

export class Greeter extends RpcTarget {
  greet(name: string): string {
    return `hello ${name}`
  }
  async askBack(callback: (question: string) => Promise<string>): Promise<string> {
    return `you said ${await callback('who?')}`
  }
}

export const router = {
  double: os.handler(async ({ input }) => (input as number) * 2),
  count: os.handler(async function* ({ input }) {
    for (let i = 0; i < (input as number); i++) yield i
  }),
}

if (process.send !== undefined && process.argv[1]?.endsWith('port-child.js')) {
  const endpoint = await openEndpoint({ ...optionsOf(process.argv[2]) })
  acceptPorts(endpoint, { channel: 'echo' }, port => {
    port.on('message', value => {
      if (value === 'close') port.close()
      else port.postMessage(value)
    })
  })
  acceptPorts(endpoint, { channel: 'silent' }, () => {})
  acceptPorts(endpoint, { channel: 'comlink' }, port => Comlink.expose(calculator, port))
  const handler = new RPCHandler(router)
  acceptPorts(endpoint, { channel: 'orpc' }, port => handler.upgrade(port))
  acceptPorts(endpoint, { channel: 'birpc' }, port => {
    createBirpc(
      { hello: (name: string) => `hi ${name}` },
      {
        post: data => port.postMessage(data),
        on: listener => port.on('message', listener),
      },
    )
  })
  acceptPorts(endpoint, { channel: 'capnweb' }, port => {
    newMessagePortRpcSession(port, new Greeter())
  })
  acceptPorts(endpoint, { channel: 'mcp' }, (port: FastPort) => {
    port.on('message', request => {
      const { id, method } = request as { id: number; method: string }
      port.postMessage({ jsonrpc: '2.0', id, result: { method } })
    })
  })
  acceptPorts(endpoint, { channel: 'mcp-sdk' }, async port => {
    const { McpServer } = (await loadSdk()) as Sdk
    const server = new McpServer({ name: 'printer', version: '1.0.0' })
    const answer = { content: [{ type: 'text', text: '3 pages' }] } as const
    server.registerTool('pages', { description: 'How many pages wait' }, async () => answer)
    await server.connect(new PortTransport(port))
  })
  process.once('disconnect', () => process.exit(0))
  process.send({ name: endpoint.name })
}
