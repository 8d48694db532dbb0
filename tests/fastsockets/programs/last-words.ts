/** argv: port. Writes, and ends the process in the same turn. */
import net from 'node:net'

const socket = net.connect(Number(process.argv[2]), '127.0.0.1', () => {
  process.on('exit', () => socket.write('; at exit'))
  socket.write('first, ')
  socket.write('second')
  process.exit(7)
})
