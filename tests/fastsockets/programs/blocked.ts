/**
 * A server that can be stopped in the middle of its turn, and a client that connects meanwhile. argv: server | client port.
 *
 * The server keeps its thread busy from `{ block }` until something arrives on its standard input; with `at-channel` as the second
 * argument already from the moment on at which it has its first channel. The client follows commands, and keeps a log.
 */
import diagnostics from 'node:diagnostics_channel'
import { once } from 'node:events'
import { readSync } from 'node:fs'
import net from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { transportOf } from '../../../fastsockets/handle/transport.ts'
import { isPatterned, patterned } from '../../support/pattern.ts'

const LARGE = 300_000
/** More than a send queue holds, less than a window. */
const EARLY = 2 << 20
/** As many as have a port promised after the first connection. */
const MANY = 3
const many: string[] = []

const [role, port = '0'] = process.argv.slice(2)
process.on('disconnect', () => process.exit())

if (role === 'server') {
  const log: string[] = []
  const server = net.createServer(socket => {
    let received = 0
    socket.on('error', error => log.push(error.message))
    socket.on('data', data => {
      if (!isPatterned(data, received)) log.push(`wrong bytes near ${received}`)
      received += data.length
    })
    socket.on('end', () => socket.end(String(socket.remotePort)))
    socket.on('close', () => log.push(`closed after ${received}`))
  })
  server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as net.AddressInfo).port }))
  if (port === 'at-channel') {
    let accepted = 0
    server.on('connection', () => accepted++)
    diagnostics.subscribe('fastsockets:step', step => {
      if (step !== 'channel open') return
      process.nextTick(() => {
        readSync(0, Buffer.alloc(1))
        process.send?.({ accepted })
      })
    })
  }
  process.on('message', (question: { block?: boolean }) => {
    if (question.block) process.send?.({ blocked: true }, () => readSync(0, Buffer.alloc(1)))
    else process.send?.({ log: log.splice(0) })
  })
} else {
  const log: string[] = []
  let socket: net.Socket
  let portAtConnect: number | undefined
  process.on('message', async (question: { what: string }) => {
    if (question.what === 'connect') {
      socket = net.connect(Number(port), '127.0.0.1')
      socket.on('error', error => log.push(error.message))
      socket.on('close', hadError => log.push(`close ${hadError}`))
      await once(socket, 'connect')
      portAtConnect = socket.localPort
      log.push(`connected ${socket.remotePort === Number(port)} ${socket.localAddress} ${socket.localFamily}`)
      log.push(
        `a port ${typeof portAtConnect} ${(socket.address() as net.AddressInfo).port === portAtConnect}`,
      )
    } else if (question.what === 'write') {
      socket.write(patterned(0, 10))
      socket.end(patterned(10, LARGE))
    } else if (question.what === 'write early') {
      await new Promise(resolve => socket.write(patterned(0, EARLY), resolve))
    } else if (question.what === 'read') {
      socket.once('data', data => {
        log.push(`local port ${Number(data) === socket.localPort} ${Number(data) === portAtConnect}`)
      })
      await closed(log)
      log.push(`after 'close' ${socket.localPort}`)
    } else if (question.what === 'connect many') {
      await connectMany(log)
    } else if (question.what === 'many') {
      while (many.filter(line => line.includes('close')).length < MANY) await nextTurn()
      log.push(...many.sort())
    } else if (question.what === 'end') {
      socket.end()
    } else if (question.what === 'replace') {
      const before = socket.removeAllListeners('close')
      socket = net.connect(Number(port), '127.0.0.1', () => {
        portAtConnect = socket.localPort
        before.destroy()
      })
      socket
        .on('error', error => log.push(error.message))
        .on('close', hadError => log.push(`close ${hadError}`))
    } else if (question.what === 'destroy') {
      socket.destroy()
      await closed(log)
    } else {
      await closed(log)
    }
    process.send?.({ log: log.splice(0), wire: transportOf(socket).transport })
  })
  process.send?.({ isReady: true })
}

/** What the server says is the port of each; looked at in every moment of its life. */
async function connectMany(log: string[]): Promise<void> {
  const sockets = Array.from({ length: MANY }, () => net.connect(Number(port), '127.0.0.1'))
  for (const [i, socket] of sockets.entries()) {
    log.push(`${i} at once ${socket.localPort}`)
    let atConnect: number | undefined
    socket.on('connect', () => {
      atConnect = socket.localPort
      log.push(`${i} connected ${typeof atConnect}`)
      socket.end('x')
    })
    socket.on('data', data => many.push(`${i} data ${Number(data) === atConnect}`))
    socket.on('end', () => many.push(`${i} end ${socket.localPort === atConnect}`))
    socket.on('close', () => many.push(`${i} close ${socket.localPort}`))
  }
  await Promise.all(sockets.map(socket => once(socket, 'connect')))
  log.sort()
}

/** The program has seen 'close': a socket may be closed a moment before that. */
async function closed(log: readonly string[]): Promise<void> {
  while (!log.some(line => line.startsWith('close'))) await nextTurn()
}
