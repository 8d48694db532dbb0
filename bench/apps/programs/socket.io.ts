/** socket.io over websockets: an event and its acknowledgement. */
import http from 'node:http'
import { Server } from 'socket.io'
import { io } from 'socket.io-client'
import { HOST, measureRoundTrips, play, portOf } from './program.ts'

const VALUE = { name: 'temperature', unit: 'K', values: [273.15, 274, 275.5] }

play({
  async serve() {
    const server = http.createServer()
    new Server(server).on('connection', socket => socket.on('echo', (value, answer) => answer(value)))
    return await portOf(server)
  },
  async call(port, ms) {
    const socket = io(`http://${HOST}:${port}`, { transports: ['websocket'] })
    await new Promise(resolve => socket.once('connect', () => resolve(undefined)))
    const figure = await measureRoundTrips('acknowledged event', ms, () => socket.emitWithAck('echo', VALUE))
    socket.disconnect()
    return [figure]
  },
})
