/**
 * A socket over a handle that the program has made itself. As that of spdy it does not say whether a write was over at
 * once: then net.js takes what any socket's last write has left, here that of a connected one. Tells whether it was over.
 */
import { spawn } from 'node:child_process'
import net, { type AddressInfo } from 'node:net'

const MORE_THAN_A_PIPE_HOLDS = 8 << 20

const silentHandle = {
  readStart: () => 0,
  readStop: () => 0,
  close: (callback: () => void) => process.nextTick(callback),
  writev: () => 0,
}

function writeToOwn(): boolean {
  let isOver = false
  const socket = new net.Socket({ handle: silentHandle } as never)
  socket.cork()
  socket.write('a')
  socket.write('b', () => {
    isOver = true
  })
  socket.uncork()
  return isOver || socket.writableLength === 0
}

const server = net
  .createServer(peer => peer.resume())
  .listen(0, '127.0.0.1', () => {
    const socket = net.connect((server.address() as AddressInfo).port, '127.0.0.1', () => {
      const reports: boolean[] = []
      // This pipe has no reader: a write that does not complete at once.
      const sleeper = spawn('sleep', ['60'], { stdio: ['pipe', 'ignore', 'ignore'] })
      sleeper.stdin.write(Buffer.alloc(MORE_THAN_A_PIPE_HOLDS))
      reports.push(writeToOwn())
      socket.write('c')
      reports.push(writeToOwn())
      sleeper.stdin.on('error', () => {})
      sleeper.kill()
      process.send?.(reports, () => process.exit())
    })
  })
