/** An ordinary server with two listeners: a TCP port, which it prints, and a unix path. argv: the path */
import net from 'node:net'

const [path = ''] = process.argv.slice(2)
const open = net.createServer(socket => socket.pipe(socket))
const closed = net.createServer(socket => socket.pipe(socket))
closed.listen(path, () => {
  open.listen(0, '127.0.0.1', () => process.send?.({ port: (open.address() as net.AddressInfo).port }))
})
process.on('disconnect', () => process.exit())
