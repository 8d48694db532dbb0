/**
 * Connects, and once it hears a word connects again, writes a lot and leaves within 'connect'. argv: where to, how many bytes,
 * and how it leaves.
 */
import net from 'node:net'

const [, , place = '', length = '0', act = ''] = process.argv
const acts: Record<string, () => void> = {
  exit: () => process.exit(),
  reallyExit: () => (process as unknown as { reallyExit(code: number): void }).reallyExit(0),
  kill: () => process.kill(process.pid, 'SIGKILL'),
}
const connect = (): net.Socket =>
  place.startsWith('/') ? net.connect(place) : net.connect(Number(place), '127.0.0.1')

connect().once('data', () => {
  const socket = connect()
  socket.on('connect', () => {
    socket.write(Buffer.alloc(Number(length), 7))
    acts[act]?.()
  })
})
