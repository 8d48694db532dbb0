/** Message ports between processes, and the RPC systems that speak through one, from npm, unchanged. */
import { createORPCClient } from '@orpc/client'
import { RPCLink } from '@orpc/client/message-port'
import type { RouterClient } from '@orpc/server'
import { createBirpc } from 'birpc'
import { newMessagePortRpcSession, type RpcStub } from 'capnweb'
import * as Comlink from 'comlink'
import type { Test } from 'tap'
import { type FastPort, messagePort } from '../../../am/rpc/index.ts'
import { Child } from '../../support/child.ts'
import { RELIABLE_PROCESS_DRIVER_LISTS } from '../../support/driver-lists.ts'
import { eventually, until, withWatchdog } from '../../support/until.ts'
import { testOver, type World } from '../../support/world.ts'
import { loadSdk, PortTransport } from './mcp-transport.ts'
import type { calculator, Greeter, router } from './port-child.ts'

const fixture = new URL('./port-child.js', import.meta.url)

async function start(t: Test, world: World) {
  const child = new Child(t, fixture, [world.list.name])
  const endpoint = await world.open()
  await endpoint.map(0, (await child.receive<{ name: string }>()).name)
  const open = (channel: string): FastPort => messagePort(endpoint, 0, { channel })
  return { child, endpoint, open }
}

const closeOf = (port: FastPort): Promise<void> =>
  withWatchdog('the close of a port', new Promise(resolve => port.on('close', () => resolve())))

testOver(
  RELIABLE_PROCESS_DRIVER_LISTS,
  'messages are cloned, in order, both ways; close is seen by both',
  async (t, world) => {
    const { child, open } = await start(t, world)
    const port = open('echo')
    const values = [
      1,
      'two',
      new Map([['three', new Date(3)]]),
      [4n],
      new Uint8Array(200_000).fill(5),
      undefined,
    ]
    const came: unknown[] = []
    for (const value of values) port.postMessage(value)
    port.on('message', value => came.push(value))
    await until('all of them', () => came.length === values.length)
    t.strictSame(came, values)

    const events: unknown[] = []
    const listener = {
      handleEvent: (event: MessageEvent) => events.push([event instanceof MessageEvent, event.data]),
    }
    port.addEventListener('message', listener)
    port.postMessage(6)
    await until('the event', () => events.length === 1)
    t.strictSame(events, [[true, 6]])
    port.dispatchEvent(new MessageEvent('message', { data: 'own' }))
    t.strictSame(events.pop(), [true, 'own'])
    t.equal(came.pop(), 'own')
    port.removeEventListener('message', listener)
    t.throws(() => port.postMessage(() => {}), /could not be cloned/)
    const { buffer } = new Uint8Array(16)
    port.postMessage(buffer, [buffer])
    t.equal(buffer.byteLength, 0, 'a transferred buffer is detached')
    t.throws(() => port.postMessage(1, [{}]), { code: 'ERR_RPC_ARGUMENT' })
    await until('both', () => came.length === values.length + 2)
    t.equal((came.at(-1) as ArrayBuffer).byteLength, 16)
    t.equal(events.length, 1, 'a removed listener is not called')

    const closed = closeOf(port)
    port.postMessage('close')
    await closed
    t.equal(port.closeReason, undefined, 'closed by the other end')
    const other = open('echo')
    other.postMessage('x')
    await new Promise(resolve => other.on('message', resolve))
    const died = closeOf(other)
    await child.kill()
    await died
    t.match(other.closeReason, { code: 'ERR_RPC_UNAVAILABLE', reason: 'PEER_DEAD' })
  },
)

testOver(
  RELIABLE_PROCESS_DRIVER_LISTS,
  'a port that nobody listens to stops its sender, and no other',
  async (t, world) => {
    const { open } = await start(t, world)
    const silent = open('silent')
    const block = new Uint8Array(1 << 20)
    let refusal: { code?: string } = {}
    for (let i = 0; i < 100 && refusal.code === undefined; i++) {
      try {
        silent.postMessage(block)
      } catch (error) {
        refusal = error as { code?: string }
      }
    }
    t.match(refusal, { code: 'ERR_RPC_EXHAUSTED' }, '64 MiB wait here, and no more')
    const echo = open('echo')
    echo.postMessage('still there')
    t.equal(await new Promise(resolve => echo.on('message', resolve)), 'still there')
  },
)

testOver(RELIABLE_PROCESS_DRIVER_LISTS, 'Comlink', async (t, world) => {
  const { open } = await start(t, world)
  const remote = Comlink.wrap<typeof calculator>(open('comlink'))
  t.equal(await remote.add(40, 2), 42)
  t.equal(await remote.base, 40)
  await t.rejects(remote.fail(), { name: 'RangeError', message: 'no' })
})

testOver(RELIABLE_PROCESS_DRIVER_LISTS, 'oRPC, with a stream', async (t, world) => {
  const { open } = await start(t, world)
  const link = new RPCLink({ port: open('orpc') })
  const client: RouterClient<typeof router> = createORPCClient(link)
  t.equal(await client.double(21 as never), 42)
  const items: unknown[] = []
  for await (const item of await client.count(5 as never)) items.push(item)
  t.strictSame(items, [0, 1, 2, 3, 4])
})

testOver(RELIABLE_PROCESS_DRIVER_LISTS, 'birpc', async (t, world) => {
  const { open } = await start(t, world)
  const port = open('birpc')
  const remote = createBirpc<{ hello(name: string): string }>(
    {},
    { post: data => port.postMessage(data), on: listener => port.on('message', listener) },
  )
  t.equal(await remote.hello('you'), 'hi you')
  await t.rejects((remote as unknown as { none(): Promise<void> }).none(), /none/)
})

testOver(RELIABLE_PROCESS_DRIVER_LISTS, 'capnweb, which calls back', async (t, world) => {
  const { open } = await start(t, world)
  const greeter: RpcStub<Greeter> = newMessagePortRpcSession<Greeter>(open('capnweb'))
  t.equal(await greeter.greet('you'), 'hello you')
  t.equal(await greeter.askBack(async question => `${question} me`), 'you said who? me')
})

testOver(RELIABLE_PROCESS_DRIVER_LISTS, "MCP's Transport is a dozen lines", async (t, world) => {
  const { open, child } = await start(t, world)
  const transport = new PortTransport(open('mcp'))
  const answers: unknown[] = []
  let isClosed = false
  transport.onmessage = message => answers.push(message)
  transport.onclose = () => {
    isClosed = true
  }
  await transport.start()
  await transport.send({ jsonrpc: '2.0', id: 1, method: 'ping' })
  await until('the answer', () => answers.length === 1)
  t.strictSame(answers, [{ jsonrpc: '2.0', id: 1, result: { method: 'ping' } }])
  await child.kill()
  await eventually('its end', () => isClosed)
})

const sdk = await loadSdk()

testOver(
  RELIABLE_PROCESS_DRIVER_LISTS,
  "MCP's SDK, client and server",
  async (t, world) => {
    if (sdk === undefined) return
    const { open, child } = await start(t, world)
    const client = new sdk.Client({ name: 'test', version: '1.0.0' })
    const closed = new Promise<void>(resolve => {
      client.onclose = resolve
    })
    await client.connect(new PortTransport(open('mcp-sdk')))
    t.match((await client.listTools()).tools, [{ name: 'pages' }])
    t.match(await client.callTool({ name: 'pages' }), { content: [{ type: 'text', text: '3 pages' }] })
    await child.kill()
    await withWatchdog('the end of the client', closed)
  },
  sdk === undefined ? '@modelcontextprotocol/sdk is not installed' : false,
)
