/**
 * Listens and connects to itself, and tells what came of it. argv: what is done to this process first, with commas between:
 * `without=NAME` removes a global, `frozen` freezes prototypes of the language, `free=N` leaves N
 * descriptors free, `serve` only listens and sends its port, `port=N` connects to that port instead of its own
 */
import { createRequire } from 'node:module'
import net, { type AddressInfo } from 'node:net'

/** To import it is to ask newer Node for all that is in it, some of which needs a SharedArrayBuffer. */
const { closeSync, openSync } = createRequire(import.meta.url)('node:fs') as typeof import('node:fs')
const [, , changes = ''] = process.argv
const told: { events: string[]; wire?: string; code?: string } = { events: [] }

for (const uncaught of ['uncaughtException', 'unhandledRejection'] as const)
  process.on(uncaught, error => told.events.push(`${uncaught} ${(error as Error).message}`))
process.on('warning', ({ message }) => {
  if (message.startsWith('everything stays on TCP')) told.code ??= 'NOT_STARTED'
})

/** What looks at sockets is loaded before there is nothing to load it with. */
const { transportOf } = await import('../../../fastsockets/handle/transport.ts').catch(() => ({
  transportOf: undefined,
}))

for (const change of changes.split(',')) {
  const [kind, name = ''] = change.split('=')
  if (kind === 'without') Reflect.deleteProperty(globalThis, name)
  if (kind === 'frozen') for (const { prototype } of [Object, Array, Map, Promise]) Object.freeze(prototype)
  if (kind === 'free') leaveDescriptors(Number(name))
}

function leaveDescriptors(count: number): void {
  const opened: number[] = []
  try {
    for (;;) opened.push(openSync('/dev/null', 'r'))
  } catch {
    for (const fd of opened.slice(opened.length - count)) closeSync(fd)
  }
}

function report(): void {
  process.send?.(told, () => process.exit())
}

const server = net.createServer(socket => socket.on('error', () => {}).end('hello'))
server.on('error', ({ message }) => {
  told.events.push(`server ${message}`)
  report()
})
const elsewhere = /port=(\d+)/.exec(changes)?.[1]
if (elsewhere !== undefined) callPort(Number(elsewhere))
else
  server.listen(0, '127.0.0.1', () => {
    const { port } = server.address() as AddressInfo
    if (changes.includes('serve')) return void process.send?.({ port })
    told.events.push('listening')
    callPort(port)
  })

function callPort(port: number): void {
  const socket = net.connect(port, '127.0.0.1')
  socket.on('connect', () => {
    const { transport, reason } = transportOf?.(socket) ?? {}
    if (transport !== undefined) told.wire = transport
    if (reason !== undefined) told.code = reason.code
  })
  socket.on('data', data => told.events.push(`data ${data}`))
  socket.on('error', ({ message }) => told.events.push(`client ${message}`))
  socket.on('close', report)
}
