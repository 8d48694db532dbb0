/** A client that says one word, and then waits for its end. */
import net from 'node:net'

const [host = '', port = ''] = process.argv.slice(2)
const socket = net.connect(Number(port), host, () => socket.write('hello'))
