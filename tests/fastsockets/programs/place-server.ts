/** Echoes at a port of 127.0.0.1, or at a unix path.   argv: port or path */
import net from 'node:net'

const [place = ''] = process.argv.slice(2)
const server = net.createServer(socket => socket.pipe(socket).on('error', () => {}))
const onListening = (): void => void process.send?.({ listening: true })
if (/^\d+$/.test(place)) server.listen(Number(place), '127.0.0.1', onListening)
else server.listen(place, onListening)
process.on('disconnect', () => process.exit())
