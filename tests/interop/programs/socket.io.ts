/** socket.io: polling that is upgraded to a websocket, acknowledgements, binary, rooms, a server that restarts. */
import http from 'node:http'
import { Server } from 'socket.io'
import { io, type ManagerOptions, type Socket, type SocketOptions } from 'socket.io-client'
import { HOST } from '../../support/placement.ts'
import { digest, heard, type Journal, largeBytes } from '../journal.ts'
import { type Place, placeOf, play, type Service } from '../scenario.ts'

async function serve(journal: Journal): Promise<Service> {
  const ends: Promise<unknown>[] = []
  let current: { server: http.Server; sockets: Server } | undefined
  const place = await begin(0)

  async function begin(port: number): Promise<Place> {
    const server = http.createServer()
    const sockets = new Server(server, { maxHttpBufferSize: 2 * largeBytes().length })
    current = { server, sockets }
    sockets.on('connection', socket => {
      const name = `server ${socket.handshake.query.name}`
      journal.note(name, 'connection')
      socket.on('echo', (value, answer) => answer(value))
      socket.on('join', async (room, answer) => {
        await socket.join(room)
        answer()
      })
      socket.on('tell', (room, text) => sockets.to(room).emit('told', text))
      socket.on('leave me', () => socket.disconnect())
      socket.on('restart', () => {
        sockets.close(() => begin(place.port))
        server.closeAllConnections()
      })
      ends.push(heard(socket, 'disconnect'))
      socket.on('disconnect', reason => journal.note(name, 'disconnect', reason))
    })
    return placeOf(server, port)
  }
  return { place, close: () => Promise.all(ends).then(() => current?.sockets.close()) }
}

async function call({ port }: Place, journal: Journal): Promise<void> {
  const sockets: Socket[] = []
  async function open(name: string, options: Partial<ManagerOptions & SocketOptions>): Promise<Socket> {
    const settings = { forceNew: true, reconnectionDelay: 10, randomizationFactor: 0, query: { name } }
    const socket = io(`http://${HOST}:${port}`, { ...settings, ...options })
    sockets.push(socket)
    socket.on('connect', () => journal.note(name, 'connect', socket.recovered))
    socket.on('disconnect', reason => journal.note(name, 'disconnect', reason))
    await heard(socket, 'connect')
    return socket
  }

  const upgraded = await open('upgraded', {})
  const { engine } = upgraded.io
  if (engine.transport.name !== 'websocket') await heard(engine, 'upgrade')
  journal.note('upgraded', engine.transport.name)
  const kinds = [
    ['upgraded', upgraded],
    ['polling', await open('polling', { transports: ['polling'] })],
    ['websocket', await open('websocket', { transports: ['websocket'] })],
  ] as const
  for (const [name, socket] of kinds) {
    journal.note(name, JSON.stringify(await socket.emitWithAck('echo', { list: [1, 'two', null] })))
    journal.note(name, digest(await socket.emitWithAck('echo', largeBytes())))
    await socket.emitWithAck('join', 'room')
    socket.on('told', text => journal.note(name, 'told', text))
  }
  const told = kinds.map(
    ([, socket]) => new Promise<void>(resolve => socket.on('told', text => text === 'item 4' && resolve())),
  )
  for (let i = 0; i < 5; i++) upgraded.emit('tell', 'room', `item ${i}`)
  await Promise.all(told)

  const polling = kinds[1][1]
  polling.emit('leave me')
  await heard(polling, 'disconnect')
  kinds[2][1].disconnect()
  const back = heard(upgraded, 'connect')
  upgraded.emit('restart')
  await back
  journal.note('upgraded', await upgraded.emitWithAck('echo', 'back again'))
  for (const socket of sockets) socket.disconnect()
}

play({ serve, call })
