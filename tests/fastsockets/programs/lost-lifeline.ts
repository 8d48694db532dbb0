/**
 * A program that loses the way to its peer: what the kernel would tell of the bootstrap connection then is told here. argv:
 * port, and the error's code. It knows which sockets are made because it looks before anybody else does.
 */
import { once } from 'node:events'
import net from 'node:net'
import { constants } from 'node:os'

const [port = '0', code = 'ETIMEDOUT'] = process.argv.slice(2)
const made: net.Socket[] = []
const { connect } = net.Socket.prototype
net.Socket.prototype.connect = function (this: net.Socket, ...args: never[]): net.Socket {
  made.push(this)
  return (connect as (...args: never[]) => net.Socket).apply(this, args)
}
const { transportOf } = await import('../../../fastsockets/index.ts')

const socket = net.connect(Number(port), '127.0.0.1')
const log: string[] = []
socket.on('data', data => log.push(`data ${data}`))
socket.on('end', () => log.push('end'))
socket.on('error', (error: NodeJS.ErrnoException) => {
  log.push(`${error.message} ${error.code} ${error.syscall} ${error.errno}`)
})
socket.on('close', hadError => log.push(`close ${hadError}`))
await once(socket, 'connect')
const { transport } = transportOf(socket)
socket.write('hello')
await once(socket, 'data')
const closed = new Promise(resolve => socket.once('close', resolve))
const lifeline = made.find(one => one !== socket && one.readyState === 'open')
const errno = -((constants.errno as Record<string, number>)[code] as number)
lifeline?.destroy(Object.assign(new Error(`read ${code}`), { code, errno, syscall: 'read' }))
await closed
process.send?.({ transport, log }, () => process.exit())
