/**
 * A cluster whose workers serve one port; each answers 'who' with its pid, over the connection. argv: port or path, worker
 * count, policy ('rr' or 'none'), kind ('net' or 'http'), most connections of a worker, a module to preload in workers.
 * Messages to the primary: { kill: pid }, { disconnect: pid }, { fork: true }; each is answered when it is done.
 */
import cluster, { type Worker } from 'node:cluster'
import http from 'node:http'
import net from 'node:net'
import { transportOf } from '../../../fastsockets/handle/transport.ts'

const [place = '0', count = '2', policy = 'rr', kind = 'net', connectionsMax = '0', preload] =
  process.argv.slice(2)

if (cluster.isPrimary) {
  cluster.schedulingPolicy = policy === 'rr' ? cluster.SCHED_RR : cluster.SCHED_NONE
  if (preload !== undefined) cluster.setupPrimary({ execArgv: ['--import', preload] })
  const pids: number[] = []
  let port = 0
  const start = (onListening: () => void): void => {
    const worker = cluster.fork()
    worker.once('listening', address => {
      port = address.port as number
      pids.push(worker.process.pid as number)
      onListening()
    })
  }
  for (let i = 0; i < Number(count); i++)
    start(() => pids.length === Number(count) && process.send?.({ port, pids }))
  const workerOf = (pid: number): Worker =>
    Object.values(cluster.workers ?? {}).find(worker => worker?.process.pid === pid) as Worker
  process.on('message', (message: { kill?: number; disconnect?: number; fork?: boolean }) => {
    const { kill, disconnect, fork } = message
    if (fork) start(() => process.send?.({ pid: pids.at(-1) }))
    const worker = workerOf(kill ?? disconnect ?? 0)
    worker?.once('exit', (code, signal) => process.send?.({ code, signal }))
    if (kill) worker.process.kill('SIGKILL')
    if (disconnect) worker.disconnect()
  })
  process.on('disconnect', () => process.exit())
} else {
  const text = (socket: net.Socket): string =>
    JSON.stringify({ pid: process.pid, transport: transportOf(socket).transport })
  const server =
    kind === 'http'
      ? http.createServer((request, response) => response.end(text(request.socket)))
      : net.createServer({ allowHalfOpen: true }, socket => {
          socket.on('error', () => {})
          socket.once('data', () => socket.write(text(socket)))
          socket.on('end', () => socket.end())
        })
  if (Number(connectionsMax) > 0) server.maxConnections = Number(connectionsMax)
  if (Number.isNaN(Number(place))) server.listen(place)
  else server.listen(Number(place), '127.0.0.1')
}
