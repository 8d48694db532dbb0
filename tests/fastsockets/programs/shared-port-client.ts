/** Connects repeatedly, and prints what the servers that answered have sent. argv: port, how often */
import { once } from 'node:events'
import net from 'node:net'

const [port = '0', count = '1'] = process.argv.slice(2)

const heard: unknown[] = []
for (let i = 0; i < Number(count); i++) {
  const socket = net.connect(Number(port), '127.0.0.1')
  let text = ''
  socket.on('data', data => {
    text += data
  })
  await once(socket, 'close')
  heard.push(JSON.parse(text))
}
process.send?.(heard, () => process.exit())
