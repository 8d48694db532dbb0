/** A client that says hello to a server that echoes, and then what came back, and which wire it was. */
import net from 'node:net'
import { transportOf } from '../../../fastsockets/index.ts'

const [host = '', port = ''] = process.argv.slice(2)
const socket = net.connect(Number(port), host, () => socket.end('ehello'))
let echo = ''
socket.on('data', bytes => {
  echo += bytes
})
socket.on('end', () => console.log(JSON.stringify({ echo, wire: transportOf(socket) })))
