/** Is handed a socket, or a server, by its parent, and echoes. Tells what the socket says of its ends. */
import type { Server, Socket } from 'node:net'

process.on('message', ({ hand }: { hand: string }, handed: unknown) => {
  if (hand === 'nothing') process.send?.('nothing')
  else if (hand === 'server') {
    ;(handed as Server).on('connection', serve)
    process.send?.('listening')
  } else serve(handed as Socket)
})

process.on('disconnect', () => process.exit())

function serve(socket: Socket): void {
  const { localAddress, localPort, remoteAddress, remotePort } = socket
  const { _handle: handle } = socket as unknown as { _handle: object }
  process.send?.({
    handle: handle.constructor.name,
    names: [localAddress, localPort, remoteAddress, remotePort],
  })
  socket.on('error', error => process.send?.({ error: (error as NodeJS.ErrnoException).code }))
  socket.on('close', () => process.send?.({ closed: true }))
  socket.pipe(socket)
}
