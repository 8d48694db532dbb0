/** Connects, sends 1000 bytes, and keeps its thread busy from then on. argv: port */
import net from 'node:net'

const socket = net.connect(Number(process.argv[2]), '127.0.0.1', () => socket.write(Buffer.alloc(1000)))
let received = 0
socket.on('data', data => {
  received += data.length
  if (received < 1000) return
  setImmediate(() => {
    process.send?.({ busy: true }, () => {
      for (;;);
    })
  })
})
