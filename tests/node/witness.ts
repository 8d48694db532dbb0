/** Preloaded after fastsockets/register: at the end of a process, says how many of its connections were fast. */
import { appendFileSync } from 'node:fs'
import net from 'node:net'
import { transportOf } from '../../fastsockets/transport.ts'

const path = process.env.FASTSOCKETS_TEST_WITNESS
const { connect } = net.Socket.prototype
const sockets = new Set<net.Socket>()

net.Socket.prototype.connect = function (this: net.Socket, ...args: unknown[]): net.Socket {
  sockets.add(this)
  return (connect as (...args: unknown[]) => net.Socket).apply(this, args)
} as typeof connect

process.on('exit', () => {
  if (path === undefined || sockets.size === 0) return
  let fastCount = 0
  for (const socket of sockets) {
    const { reason, transport } = transportOf(socket)
    if (reason === undefined && transport !== 'connecting') fastCount++
  }
  appendFileSync(path, `${fastCount} ${sockets.size}\n`)
})
