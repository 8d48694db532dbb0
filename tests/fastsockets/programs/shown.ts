/**
 * Connects to itself by TCP, a unix socket and tls, and reports what programs see that print, walk, copy and compare
 * sockets and servers.
 */
import { deepStrictEqual } from 'node:assert'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import http from 'node:http'
import net, { type AddressInfo, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import tls from 'node:tls'
import { inspect } from 'node:util'
import { transportOf } from '../../../fastsockets/handle/transport.ts'
import { walk } from '../../support/walk.ts'

const pem = (name: string): Buffer =>
  readFileSync(new URL(`../../../../tests/fixtures/${name}.pem`, import.meta.url))

/** What `JSStream` must find by name. */
const HIDDEN = ['isClosing', 'onreadstart', 'onreadstop', 'onshutdown', 'onwrite']

/** Own keys, those of the prototypes with what inspect goes by, and what `for in` meets. */
function keysOf(object: object): object {
  const levels: object[] = []
  for (let at = object; at !== Object.prototype; at = Object.getPrototypeOf(at)) {
    const keys = Reflect.ownKeys(at).filter(key => at === object || !HIDDEN.includes(String(key)))
    const described = keys.map(key => {
      const { enumerable } = Object.getOwnPropertyDescriptor(at, key) as PropertyDescriptor
      return `${String(key)}${enumerable ? '' : ' (not enumerable)'}`
    })
    levels.push({ of: at === object ? 'itself' : at.constructor.name, keys: described })
  }
  const met: string[] = []
  for (const key in object) met.push(key)
  return { levels, keys: Object.keys(object), met, symbols: Object.getOwnPropertySymbols(object).map(String) }
}

/** As text, without what is different each time, and without what differs in its value alone. */
function textOf(object: object): string {
  const lines = inspect(object, { depth: 10, showHidden: true, breakLength: 100 }).split('\n')
  return (
    lines
      // On Node 20 inspect takes Node's own for a method.
      .filter(line => !/^ *\[?onread\]?: \[Getter\/Setter\],?$/.test(line))
      .map(line =>
        line
          .replace(/(isStreamBase): (true|\[Getter\])/, '$1')
          .replace(/\d+/g, '0')
          .replace(/,$/, ''),
      )
      .join('\n')
  )
}

/** As libraries copy objects: what inherits from the same prototype, with copies of the members, some of which are looked at. */
function copy(value: unknown, known = new Map<unknown, unknown>()): unknown {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return value
  if (known.has(value)) return known.get(value)
  const made = Object.create(Object.getPrototypeOf(value)) as Record<string | symbol, unknown>
  known.set(value, made)
  for (const key of Reflect.ownKeys(value)) {
    const { enumerable } = Object.getOwnPropertyDescriptor(value, key) as PropertyDescriptor
    if (enumerable) made[key] = copy((value as Record<string | symbol, unknown>)[key], known)
  }
  return known.size
}

/** Each getter of a copy, and of the prototypes themselves, which no handle belongs to. */
function readForeign(handle: object): string[] {
  const thrown: string[] = []
  const made = Object.create(Object.getPrototypeOf(handle)) as object
  for (let at = made; at !== Object.prototype; at = Object.getPrototypeOf(at))
    for (const receiver of [made, at]) {
      for (const key of Reflect.ownKeys(at)) {
        try {
          Reflect.get(at, key, receiver)
        } catch (error) {
          thrown.push(`${String(key)}: ${(error as Error).message}`)
        }
      }
    }
  return thrown
}

/** Each getter of the class, with no socket: mocks and walks do that. */
function readPrototype(object: object): object {
  const prototype = Object.getPrototypeOf(object)
  return Object.fromEntries(
    Object.keys(Object.getOwnPropertyDescriptors(prototype)).map(key => {
      try {
        return [key, typeof prototype[key]]
      } catch (error) {
        return [key, (error as Error).message]
      }
    }),
  )
}

function compare(one: object, other: object): string {
  try {
    deepStrictEqual(one, other)
    return 'equal'
  } catch (error) {
    return `${(error as Error).message.replace(/\d+/g, '0').length > 0}`
  }
}

function decycled(object: object): string {
  const seen = new WeakSet()
  const text = JSON.stringify(object, (_key, value) => {
    if (typeof value !== 'object' || value === null) return value
    if (seen.has(value)) return '~'
    seen.add(value)
    return value
  })
  return text.replace(/\d+/g, '0')
}

function report(object: object, handle: object): object {
  return {
    keys: keysOf(object),
    handle: keysOf(handle),
    ofPrototype: readPrototype(object),
    text: textOf(object),
    handleText: textOf(handle),
    walked: walk(object),
    foreign: readForeign(handle),
    copied: copy(object),
    json: decycled(object),
    constructor: (handle.constructor as unknown as new (type: number) => object).name,
  }
}

function handleOf(owner: object): object {
  return (owner as { readonly _handle: object })._handle
}

async function pair(
  server: net.Server,
  connect: () => Socket,
  event = 'connection',
): Promise<[client: Socket, accepted: Socket]> {
  const accepted = once(server, event)
  const client = connect().resume()
  await once(client, event === 'connection' ? 'connect' : 'secureConnect')
  const [socket] = (await accepted) as [Socket]
  socket.resume().write('hello')
  await once(client, 'data')
  return [client, socket]
}

const transports: string[] = []
const told: Record<string, object> = {}

const server = net.createServer().listen(0, '127.0.0.1')
await once(server, 'listening')
const { port } = server.address() as AddressInfo
const [client, accepted] = await pair(server, () => net.connect(port, '127.0.0.1'))
const [other] = await pair(server, () => net.connect(port, '127.0.0.1'))
told.server = report(server, handleOf(server))
told.client = report(client, handleOf(client))
told.accepted = report(accepted, handleOf(accepted))
told.compared = { sockets: compare(client, other), handles: compare(handleOf(client), handleOf(other)) }
transports.push(transportOf(client).transport)

const path = join(tmpdir(), `shown-${process.pid}`)
const unixServer = net.createServer().listen(path)
await once(unixServer, 'listening')
const [unixClient, unixAccepted] = await pair(unixServer, () => net.connect(path))
told.unixServer = report(unixServer, handleOf(unixServer))
told.unixClient = report(unixClient, handleOf(unixClient))
told.unixAccepted = report(unixAccepted, handleOf(unixAccepted))
transports.push(transportOf(unixClient).transport)

const tlsServer = tls.createServer({ cert: pem('cert'), key: pem('key') }).listen(0, '127.0.0.1')
await once(tlsServer, 'listening')
const { port: tlsPort } = tlsServer.address() as AddressInfo
const [tlsClient] = await pair(
  tlsServer,
  () => tls.connect({ port: tlsPort, host: '127.0.0.1', rejectUnauthorized: false }),
  'secureConnection',
)
const { _parent: below } = handleOf(tlsClient) as { readonly _parent: object }
told.tls = {
  below: keysOf(below),
  text: textOf(below).replace(/^.*ssl.*$/gm, ''),
  foreign: readForeign(below),
}
transports.push(transportOf(tlsClient).transport)

const httpServer = http.createServer((_request, response) => response.end('x')).listen(0, '127.0.0.1')
await once(httpServer, 'listening')
const request = http.get({ port: (httpServer.address() as AddressInfo).port, host: '127.0.0.1' })
const [response] = await once(request, 'response')
told.http = { copied: copy(response), walked: walk(response), keys: keysOf(handleOf(response.socket)) }

process.send?.({ transports, told })
process.disconnect?.()
process.exit()
