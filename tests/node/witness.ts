/** Preloaded after fastsockets/register: at the end of a process, says how many of its connections were fast. */
import { appendFileSync } from 'node:fs'
import net from 'node:net'
import { transportOf } from '../../fastsockets/handle/transport.ts'

const path = process.env.FASTSOCKETS_TEST_WITNESS
const { connect } = net.Socket.prototype
/** Some tests wait until a socket of theirs is collected: those cannot be asked. */
const sockets: WeakRef<net.Socket>[] = []

net.Socket.prototype.connect = function (this: net.Socket, ...args: unknown[]): net.Socket {
  sockets.push(new WeakRef(this))
  return (connect as (...args: unknown[]) => net.Socket).apply(this, args)
} as typeof connect

process.on('exit', () => {
  if (path === undefined || sockets.length === 0) return
  let fastCount = 0
  for (const reference of sockets) {
    const socket = reference.deref()
    if (socket === undefined) continue
    const { reason, transport } = transportOf(socket)
    if (reason === undefined && transport !== 'connecting') fastCount++
  }
  appendFileSync(path, `${fastCount} ${sockets.length}\n`)
})
